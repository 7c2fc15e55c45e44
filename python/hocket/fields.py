"""The types of the fields in the lines of a trace, by key (src/core/event/fields.hpp), and their check.

A trace comes from a file, which may be damaged or forged. What passes the check can be used without another one.
"""

from __future__ import annotations

import json
from math import nan
from sys import float_info
from typing import Any

KEYS: dict[type, str] = {
    str: """
        action addresses allocation application application_asked application_given arguments assigned_servers
        because_of behind curve data_sets_text decided_for delegated_targets directory drained error failed file
        file_system filter flop_source for_application forward_shares forward_weights held_targets hinted holder how
        info instance io_intervals job leave left method methods metric model modelled mpi node nodes on_node operation
        parts parts_error pids places policy port previous program quantity reason redistribution
        redistribution_strategy release scheduler scheduler_by server servers sha256 slurm_step spawn spawn_strategy
        state target target_policies text token told_by trace trace_error version wait_intervals weight_by
    """,
    int: """
        agents aggregators ago_ns ahead all_comm_ns all_cpu_ns announced_left app applications asked_ns at_iteration
        back_ns buffer_bytes busy_ns bytes bytes_kept bytes_moved bytes_per_round bytes_read bytes_written comm_calls
        comm_most_ns comm_ns compute_nodes conflict_ns constant_ns constant_stopped_ns control_every cores count
        cpu_most_ns cpu_ns data_servers data_set_bytes_left data_sets_left decision delegation duration_ns
        duration_spread_ns elapsed_ns end_ns ended epoch events exchange_bytes files forward_queue forward_waited_ns
        forwarded forwarded_bytes from given_servers heartbeat_ns held_bytes hold_off_ns idle_ns index io_calls io_ns
        iteration iterations kept last_io_end_ns last_io_start_ns last_service_ns leader_place lease_ns least_nodes
        longest_ns map_epoch member merged missing most_nodes next_start_ns next_uncertainty_ns now_ns number oldest_ns
        operations overlap_ns peer_pid peers_ns period_after_ns period_ns period_spread_ns phase_bytes phases
        phases_in_period pid place position processes put_to_sleep queue rank reconfigurations reports request
        resizing_to resuming_ns return_at_iteration round rounds samples service_ns silent_ns since_ns sleeping sources
        spawning_ns spawning_stopped_ns start_after_ns start_before_ns start_ns start_unix_ns started started_ns
        stopped_ns stripe_bytes subscription system_calls taken targets time_ns to told_processes uncertainty_ns
        user variable_ns wait_ns waited_ns wanted weight woken
    """,
    bool: """
        allow begun delegated delegations direct done forwards in_map malleable met moves_data_sets of_one_process
        phase_over relative unstopped wait write_behind write_through
    """,
    float: """
        actual_s bytes_per_s comm_s expected_bytes_per_s flop flop_per_iteration io_ratio io_s io_spread_s iteration_s
        iteration_spread_s operations_per_s period_s predicted_s share uncertainty_s
    """,
}
TYPES = {key: kind for kind, keys in KEYS.items() for key in keys.split()}
REASONS = ("reason", "obstacle")  # of a DECISION: a kind and its numbers
LARGEST = 2**63


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


_decode = json.JSONDecoder(parse_constant=_refuse).decode


def object_of(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line. Raises ValueError if it is none, or has texts that are not UTF-8."""
    text = line.decode()
    try:
        keys = _decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(keys, dict):
        raise ValueError("it is no JSON object")
    if "\\ud" in text or "\\uD" in text:
        json.dumps(keys, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    return keys


def check(keys: dict[str, Any], type_name: str) -> None:
    """Raise ValueError if a known field has a value of another type. null as a number becomes NaN, as it was written.

    Unknown keys pass: a later version may have written them.
    """
    for key, value in keys.items():
        kind = TYPES.get(key)
        if kind is int:
            if type(value) is not int or not -LARGEST <= value < LARGEST:
                raise ValueError(f"'{key}' is no integer of 64 bits")
        elif kind is float:
            if value is None:
                keys[key] = nan
            elif type(value) not in (int, float) or not -float_info.max <= value <= float_info.max:
                raise ValueError(f"'{key}' is no number")
        elif key in REASONS and type_name == "DECISION":
            if not isinstance(value, dict):
                raise ValueError(f"'{key}' is no JSON object")
        elif kind is not None and type(value) is not kind:
            raise ValueError(f"'{key}' is no {'text' if kind is str else 'true or false'}")
