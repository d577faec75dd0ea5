// Makes the program killable at its named crash points. In: HEBE_CRASH_LOG (a file that every
// process of a test appends the points it passes to) and HEBE_CRASH_AT ("name#k"); out: SIGKILL
// when the name is passed for the k-th time by any of them. Linked into the test program only: the
// shipped one cannot be told to die.
#include "core/crash_point.hpp"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

void pass(std::string_view name, const std::string& log, const std::string& at) {
  const std::string line = std::string(name) + "\n";
  const int fd = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, line.data(), line.size()) < 0) std::abort();
  ::close(fd);
  const auto hash = at.rfind('#');
  if (hash == std::string::npos || at.substr(0, hash) != name) return;
  long passed = 0;
  std::ifstream in(log);
  for (std::string text; std::getline(in, text);) passed += text == name;
  if (passed == std::stol(at.substr(hash + 1))) ::kill(::getpid(), SIGKILL);
}

const bool listening = [] {
  const auto log = variable("HEBE_CRASH_LOG");
  if (log.empty()) return false;
  hebe::listen_at_crash_points(
      [log, at = variable("HEBE_CRASH_AT")](std::string_view name) { pass(name, log, at); });
  return true;
}();

} // namespace
