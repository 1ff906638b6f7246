// SPDX-License-Identifier: Apache-2.0
// Instances and answers as plain Python objects and back, to the bit: what pickle and copy take.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "host/python/solver.h"

namespace pointsman {

// NDJSON, which is lossless, and of each instance what it leaves out.
nanobind::tuple state_of(const Instances& instances);
Instances instances_of_state(const nanobind::bytes& lines, const nanobind::list& members);

// Each solution and the summary. InputError for the state of another version.
nanobind::tuple state_of(const Answers& answers);
Answers answers_of_state(const Instances& instances, const nanobind::list& solutions,
                         const nanobind::tuple& summary);

// The instances of NDJSON; `name` is the text's in messages.
Instances instances_of_lines(const nanobind::bytes& lines, const std::string& name);

}  // namespace pointsman
