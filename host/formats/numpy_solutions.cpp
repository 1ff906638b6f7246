// SPDX-License-Identifier: Apache-2.0
// Answers as NumPy arrays: .npy and .npz (docs/file-formats.md).
#include <limits>

#include "host/formats/arrays.h"
#include "host/formats/formats.h"
#include "host/formats/npz_file.h"
#include "models/tools/atomic_file.h"

namespace pointsman {
SolutionBatch solutions_of_rows(const NpyArray& array, const InstanceBatch& instances,
                                const std::string& file) {
  const std::vector<int64_t>& shape = array.shape();
  if (array.header().is_float() || array.header().is_text()) {
    array.fail_header("descr: expected integers, found " + array.header().type_text());
  }
  if (shape.empty() || shape.size() > 2) {
    array.fail_header("shape: expected (B, n) or (n,), found " + array.header().shape_text());
  }
  check_count(shape.size() == 1 ? 1 : static_cast<size_t>(shape[0]), instances, file);
  SolutionBatch out;
  size_t next = 0;
  for (const Instance& instance : instances) {
    if (shape.back() != instance.n()) {
      array.fail_header("shape: expected n = " + std::to_string(instance.n()) + ", found " +
                        array.header().shape_text());
    }
    const Problem& problem = problem_of(instance);
    Solution solution;
    solution.objective = kNoNumber;
    for (int32_t i = 0; i < instance.n(); ++i, ++next) {
      const int64_t value = array.integer(next);
      if (value < 0 || value > (problem.has_all_items ? std::numeric_limits<int32_t>::max() : 1)) {
        array.fail(array.index_text(next) + ": expected " +
                   (problem.has_all_items ? "a " + std::string(problem.item) + ", from 0" : "0 or 1") +
                   ", found " + std::to_string(value));
      }
      if (problem.has_all_items) {
        solution.order.push_back(static_cast<int32_t>(value));
      } else if (value == 1) {
        solution.order.push_back(i);
      }
    }
    out.push_back(std::move(solution));
  }
  return out;
}

SolutionBatch parse_npy_answers(std::string_view bytes, const std::string& file,
                                const InstanceBatch& instances) {
  return solutions_of_rows(NpyArray(bytes, file), instances, file);
}

SolutionBatch parse_npz_answers(std::string_view bytes, const std::string& file,
                                const InstanceBatch& instances) {
  const NpzFile npz(bytes, file);
  const std::string name = npz.has("tours") ? "tours" : npz.has("selections") ? "selections" : "";
  if (name.empty()) throw InputError(file, 0, "expected `tours` or `selections`, found " + npz.names());
  SolutionBatch out = solutions_of_rows(npz.array(name), instances, file);
  if (npz.has("costs")) {
    const NpyArray costs = npz.array("costs");
    if (costs.header().is_text() || costs.shape().size() > 1) costs.fail("expected numbers (B,)");
    check_count(costs.header().count, instances, file);
    for (size_t i = 0; i < out.size(); ++i) out[i].objective = costs.number(i);
  }
  return out;
}

std::string write_npy_answers(const Answer& answer) {
  check_uniform(answer.instances);
  const auto n = static_cast<size_t>(answer.instances[0].n());
  const bool has_all_items = problem_of(answer.instances[0]).has_all_items;
  std::string out = npy_header(has_all_items ? "<i4" : "|u1", {answer.solutions.size(), n});
  for (const Solution& solution : answer.solutions) {
    if (solution.status == Status::kUnsolved) {  // a row of -1
      out.append(n * (has_all_items ? sizeof(int32_t) : 1), '\xFF');
      continue;
    }
    std::string taken(n, '\0');
    for (const int32_t item : solution.order) {
      if (has_all_items) append_bytes(out, item);
      taken.at(static_cast<size_t>(item)) = '\1';
    }
    if (!has_all_items) out += taken;
  }
  return out;
}

std::string write_npz_answers(const Answer& answer) {
  const std::string orders = write_npy_answers(answer);
  std::string costs = npy_header("<f8", {answer.solutions.size()});
  for (const Solution& solution : answer.solutions) append_bytes(costs, solution.objective);
  const bool has_all_items = problem_of(answer.instances[0]).has_all_items;
  return zip_stored({{has_all_items ? "tours.npy" : "selections.npy", orders}, {"costs.npy", costs}});
}

}  // namespace pointsman
