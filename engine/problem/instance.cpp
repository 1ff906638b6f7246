// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/instance.h"

#include "kernels/common/fnv1a.h"

namespace pointsman {

const char* name_of(Status status) {
  switch (status) {
    case Status::kDone:
      return "done";
    case Status::kTimeLimit:
      return "time_limit";
    case Status::kInterrupted:
      return "interrupted";
  }
  return "";
}

uint64_t instance_key(const Instance& instance, uint64_t row) {
  return instance.has_id ? fnv1a(instance.id) : row;
}

}  // namespace pointsman
