// SPDX-License-Identifier: Apache-2.0
// What the CUDA kernels that read encoded sequences expect in device memory, made by the CPU.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/backend/cpu/network.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/engine/random_batch.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {

// Parameter sets of one model, as the CPU reads them.
struct HostModel {
  ModelConfig config;
  ParameterLayout layout;
  std::vector<std::unique_ptr<CpuParameters>> sets;

  HostModel(const ModelConfig& config_, const std::vector<std::vector<float>>& parameters)
      : config(config_), layout(config) {
    for (const std::vector<float>& flat : parameters) {
      sets.push_back(std::make_unique<CpuParameters>(config, layout));
      sets.back()->flat = flat;
      sets.back()->prepare();
    }
  }

  Projections projections() const { return projections_of(config.glimpses); }

  // [sets][...] whatever `read` gives of each set.
  template <typename Read>
  std::vector<float> stacked(const Read& read) const {
    std::vector<float> all;
    for (const auto& set : sets) {
      const auto one = read(*set);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
};

// stored [columns][H] at `offset` of the flat parameters, transposed into columns of [H][width], in fours.
inline void transpose_into(const std::vector<float>& flat, size_t offset, int columns, int first_column,
                           int width, std::vector<float>& out) {
  out.resize(static_cast<size_t>(kHidden) * width);
  for (int j = 0; j < columns; ++j) {
    for (int k = 0; k < kHidden; ++k) {
      out[index_in_fours(k, first_column + j, width)] = flat[offset + static_cast<size_t>(j) * kHidden + k];
    }
  }
}

// Sequences encoded on the CPU; sequence s by parameter set set_of[s].
struct HostEncoding {
  std::vector<float> h, c_last;           // [sequences][n + 1][H], [sequences][H]
  std::vector<float> references, bounds;  // as ProjectReferencesArgs writes them

  HostEncoding(const HostModel& model, const RandomBatch& batch, const std::vector<int>& set_of) {
    const size_t n = batch.n, row = model.projections().count * n * kHidden;
    references.resize(batch.count * row);
    for (int s = 0; s < batch.count; ++s) {
      const SequenceBatch sequences = batch.batch();
      const RolloutTile alone{{{s, 0, 1, 0}}, 1};
      EncodedTile tile;
      encode({*model.sets[set_of[s]], sequences, alone, StopToken()}, true, tile);
      h.insert(h.end(), tile.states.h_before(0), tile.states.h_before(0) + (n + 1) * kHidden);
      c_last.insert(c_last.end(), tile.states.c_before(batch.n), tile.states.c_before(batch.n) + kHidden);
      for (size_t at = 0; at < row; ++at) {
        const size_t d = at % kHidden;
        references[s * row + at - d + reference_index(static_cast<int>(d))] = tile.storage[at];
      }
      bounds.push_back(tile.references[0].glimpse_bound);
      bounds.push_back(tile.references[0].pointer_bound);
    }
  }
};

// Ranges of equal numbers in a non-decreasing list.
inline std::vector<SetRange> ranges_of(const std::vector<int>& set_of) {
  std::vector<SetRange> ranges;
  for (int row = 0; row < static_cast<int>(set_of.size()); ++row) {
    if (ranges.empty() || ranges.back().set != set_of[row]) ranges.push_back({set_of[row], row, 0});
    ++ranges.back().rows;
  }
  return ranges;
}

}  // namespace pointsman::cuda
