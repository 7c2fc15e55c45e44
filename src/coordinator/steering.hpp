// Carries out what policies for cores decide (CLARISSE+FlexMPI, Fig. 3: the resource manager and the library controllers).
//
//   an event → policy → CoreChange → cores from the resource manager → RECONFIGURE at Iter_reconf1 … RECONFIGURATION
//            → RECONFIGURE back at Iter_reconf2 … RECONFIGURATION → the cores are free again
//
// Every decision is told (DECISION), and every prediction it rested on is held against what happens (OUTCOME). An
// application that refuses or fails a resize, dies, ends early, or whose next phase comes otherwise than predicted, gives
// its cores back. A new application that finds no free cores gets them from expanded ones: temporary expansions first,
// then those whose cores help least by their speedup curve, the latest first among equals.
//
// Applications without a speedup curve are measured on line where a policy needs one: resized at their start to a few
// sizes for a phase each, and back (section 4.1, the on-line predictor).
//
// A part of the coordinator; pure and not thread-safe as it is.
#pragma once
