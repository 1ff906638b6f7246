// SPDX-License-Identifier: Apache-2.0
// How a call is cut: chunks of consecutive sequences and rollouts ("rows") that fit the device's memory, each
// uploaded in one copy and its results downloaded in one.
#pragma once

#include <functional>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/device.h"

namespace pointsman::cuda {

struct CudaChunk {
  int first_sequence = 0, sequences = 0;
  int skipped = 0;           // rollouts of the first sequence that earlier chunks hold
  int64_t first_result = 0;  // rollouts of the call before this chunk's
  int rows = 0;
  std::vector<int32_t> first_row{0};  // [sequences + 1]
};

// All sequences. counts: rollouts a sequence, here and below; null: 1 each.
CudaChunk whole_batch(const SequenceBatch& batch, const int32_t* counts);

// What a chunk needs: bytes of device memory and of page-locked memory (per direction), and the work that no
// stop ends, in pairs of items of an attention encoder.
struct ChunkNeed {
  size_t device, upload, download;
  double pairs = 0.0;
};
using MeasureChunk = std::function<ChunkNeed(int sequences, int rows)>;

// Whether so many sequences and rows fit at once, in memory and in the time that a stop may wait.
bool is_one_chunk(const CudaMemory& memory, const MeasureChunk& measure, int sequences, int64_t rows);

// Drops a held tape that leaves no room for a single rollout; throws DeviceError if one does not fit even
// then.
std::vector<CudaChunk> cut_into_chunks(CudaMemory& memory, const SequenceBatch& batch, const int32_t* counts,
                                       const MeasureChunk& measure);

// What a chunk's arrays are sized by; the flags tell which of its inputs the call has. decode: tiles.
struct ChunkShape {
  int n = 0, width = 0, steps = 0;  // as SequenceBatch
  int sequences = 0, rows = 0;
  int sequence_ranges = 0, row_ranges = 0, tiles = 0;
  size_t numbers = 0;  // doubles of a sequence that the rules read
  bool sampling = false, orders = false, weights = false, decode = false;
};

// The shape of a chunk of so many sequences and rows with as many ranges and tiles as there can be.
ChunkShape at_most(ChunkShape shape, const SequenceBatch& batch, int sequences, int rows);

// A chunk's inputs, which are copied to the device in one piece: the same in page-locked memory and there.
struct ChunkArrays {
  ChunkArrays(Placement& placement, const ChunkShape& shape);
  float* features;                        // [sequences][n][width]
  double* item_weights;                   // [sequences][numbers]
  double* capacities;                     // [sequences]; where there are numbers
  int32_t* first_row;                     // [sequences + 1]
  int32_t* sequence_of;                   // [rows]
  uint64_t* keys;                         // [sequences]; sampling
  uint32_t* first_samples;                // [sequences]; sampling
  int32_t* orders;                        // [rows][steps]; forced
  float* weights;                         // [rows]; gradient
  SetRanges sequence_ranges, row_ranges;  // parameter sets; ranges without rows left out
  DecodeTile* tiles;
  int32_t* stop;  // [1] 0 until the host wants an end

  std::byte* block;  // all of it
  size_t bytes;
};

// How rollouts are given to the decode kernel. samples: of a sequence that share prefixes in a tile, at most,
// with `blocks` tiles at once; 0: none do.
struct TileShape {
  DecodeTiling tiling;
  int blocks = 0, samples = 0;
  Precision precision = Precision::kFp32;
};
// What may share a tile: see cut_into_tiles().
DecodeLoad decode_load(const SequenceBatch& batch, const CudaChunk& chunk);
// Sequences with many rollouts get tiles of their own; neighbours with one rollout each share a tile. Samples
// that share prefixes get as few tiles as keep all blocks busy. In clusters a parameter set's tiles fill its
// clusters, the last ones with no rows.
std::vector<DecodeTile> cut_into_tiles(const SequenceBatch& batch, const CudaChunk& chunk,
                                       const TileShape& shape);

// A chunk as it is. flags: the call's. Of a TileShape without rows there are no tiles.
struct ChunkPlan {
  ChunkPlan(const SequenceBatch& batch, const CudaChunk& chunk, const ChunkShape& flags,
            const TileShape& tile_shape = {});
  int first_set() const { return sequence_ranges.front().set; }
  int sets() const { return sequence_ranges.back().set - first_set() + 1; }

  const SequenceBatch& batch;
  const CudaChunk& chunk;
  std::vector<SetRange> sequence_ranges, row_ranges;  // as ChunkArrays
  TileShape tile_shape;
  std::vector<DecodeTile> tiles;
  ChunkShape shape;
};

// Copies a chunk's inputs to the device. fill: writes the arrays that only this kind of call has, in
// page-locked memory.
void upload(DeviceStream& stream, const ChunkPlan& plan, const ChunkArrays& inputs,
            const std::function<void(const ChunkArrays&)>& fill);

// Its first half: into DeviceStream::uploads, so many bytes, which no copy may be reading.
void stage(DeviceStream& stream, const ChunkPlan& plan, size_t bytes,
           const std::function<void(const ChunkArrays&)>& fill);

}  // namespace pointsman::cuda
