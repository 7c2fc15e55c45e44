// Test support: counts the system calls of the calling thread, from an object's creation on. It cannot be turned off,
// so the thread should end soon after. Linux on x86-64 only.
//
// A seccomp filter turns each system call of the thread into SIGSYS. The handler counts it, and makes the call itself,
// by the one instruction that the filter lets pass.
#pragma once

#if defined(__x86_64__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// Makes a system call: number and six arguments.
extern "C" long hocket_test_syscall(long number, long a, long b, long c, long d, long e, long f);
extern "C" const char hocket_test_syscall_end;

asm(R"(
.text
.globl hocket_test_syscall
.type hocket_test_syscall, @function
hocket_test_syscall:
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
.globl hocket_test_syscall_end
hocket_test_syscall_end:
  ret
)");

namespace hocket::runtime::testing {

class SystemCalls {
 public:
  // Returns false if the system does not allow it.
  static bool begin_to_count() {
    count() = 0;
    struct sigaction action {};
    action.sa_sigaction = &SystemCalls::take;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    if (sigaction(SIGSYS, &action, nullptr) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    const auto end = reinterpret_cast<std::uint64_t>(&hocket_test_syscall_end);
    const auto low = static_cast<std::uint32_t>(end);
    const auto high = static_cast<std::uint32_t>(end >> 32U);
    constexpr std::uint32_t place = offsetof(seccomp_data, instruction_pointer);
    std::array<sock_filter, 8> filter{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog program{filter.size(), filter.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
  }
  static std::atomic<int>& count() {
    static std::atomic<int> calls = 0;
    return calls;
  }

 private:
  static void take(int, siginfo_t*, void* context) {
    ++count();
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    registers[REG_RAX] =
        hocket_test_syscall(registers[REG_RAX], registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                            registers[REG_R10], registers[REG_R8], registers[REG_R9]);
  }
};

}  // namespace hocket::runtime::testing
#endif
