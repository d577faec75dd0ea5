// Code that runs in a child process: to be killed, to lose its rights, or to hold a lock. In: a
// function; out: how the child ended. Invariant: the child never returns into the test program.
#pragma once

#include <functional>
#include <stdexcept>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

namespace hebe::test {

/// Runs `body` in a child and returns its exit code, or 128 + signal when a signal ended it.
inline int exit_code_in_child(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) {
    int code = 250; // an exception escaped
    try {
      code = body();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// A child that does `body`, says so, and then waits to be killed.
class WaitingChild {
public:
  /// Returns once `body` has returned true in the child; throws when it returned false.
  explicit WaitingChild(const std::function<bool()>& body) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
    pid_ = ::fork();
    if (pid_ == 0) {
      const char said = body() ? 'y' : 'n';
      if (::write(ends[1], &said, 1) == 1)
        for (;;) ::pause();
      ::_exit(1);
    }
    ::close(ends[1]);
    char said = 'n';
    const auto got = ::read(ends[0], &said, 1);
    ::close(ends[0]);
    if (got != 1 || said != 'y') {
      kill();
      throw std::runtime_error("the child could not begin");
    }
  }
  ~WaitingChild() { kill(); }
  WaitingChild(const WaitingChild&) = delete;
  WaitingChild& operator=(const WaitingChild&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// SIGKILL; returns when the child is gone.
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0) {
    }
    pid_ = -1;
  }

private:
  pid_t pid_ = -1;
};

/// In a child: an ordinary user, for whom permissions hold. False when that is not possible.
inline bool become_ordinary_user() {
  constexpr unsigned kNobody = 65534;
  return ::geteuid() != 0 || (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
}

} // namespace hebe::test
