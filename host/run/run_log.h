// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace pointsman {

// Who is told, a line at a time, what a run does. Each may be empty.
struct RunLog {
  std::function<void(const std::string&)> info = {}, debug = {};

  void tell(const std::string& message) const {
    if (info) info(message);
  }
  void tell_detail(const std::string& message) const {
    if (debug) debug(message);
  }
};

}  // namespace pointsman
