// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/chunk.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/backend/requests.h"

namespace pointsman::cuda {
namespace {

constexpr size_t kStagingBytes = size_t{256} << 20;  // most page-locked memory, each direction
// Most pairs of items of an attention encoder, which no stop ends: three layers of 600 instructions a pair
// are 0.1 s at half the rate of an H200.
constexpr double kMostPairs = 1e9;

struct Cutter {
  const CudaMemory& memory;
  const MeasureChunk& measure;
  const bool all_fit;  // the whole call is one chunk
  std::vector<CudaChunk> chunks = {};
  CudaChunk chunk = {};

  void add(int sequence, int count) {
    for (int left = count;;) {
      const int taken = fitting(left);
      if (taken >= 0) {
        ++chunk.sequences;
        chunk.first_row.push_back(chunk.rows += taken);
        left -= taken;
        if (left == 0) return;
      } else if (chunk.sequences == 0) {
        refuse();
      }
      flush(sequence, count - left);
    }
  }

  std::vector<CudaChunk> finish() {
    if (chunk.sequences > 0) chunks.push_back(chunk);
    return std::move(chunks);
  }

  // How many of `left` rollouts of another sequence the chunk still takes; -1: not one, or not the sequence.
  int fitting(int left) const {
    const auto fits = [&](int rows) {
      return is_one_chunk(memory, measure, chunk.sequences + 1, chunk.rows + rows);
    };
    if (all_fit || fits(left)) return left;
    int taken = 0;
    for (int beyond = left; beyond - taken > 1;) {
      const int middle = taken + (beyond - taken) / 2;
      (fits(middle) ? taken : beyond) = middle;
    }
    return taken > 0 ? taken : -1;
  }

  void flush(int next_sequence, int skipped) {
    const int64_t next_result = chunk.first_result + chunk.rows;
    if (chunk.sequences > 0) chunks.push_back(std::move(chunk));
    chunk = {.first_sequence = next_sequence, .skipped = skipped, .first_result = next_result};
  }

  [[noreturn]] void refuse() const {
    const ChunkNeed need = measure(1, 1);
    throw DeviceError("CUDA: one rollout needs " + mebibytes(need.device) +
                      " of device memory, and there are " + mebibytes(memory.available()));
  }
};

// Ranges of equal sets; rows_of tells a sequence's first row and the first one after it.
template <typename RowsOf>
std::vector<SetRange> ranges_of(const SequenceBatch& batch, const CudaChunk& chunk, const RowsOf& rows_of) {
  std::vector<SetRange> ranges;
  for (int s = 0; s < chunk.sequences; ++s) {
    const auto [first, last] = rows_of(s);
    if (first == last) continue;
    const int set = batch.set_of(chunk.first_sequence + s);
    if (ranges.empty() || ranges.back().set != set) ranges.push_back({set, first, 0});
    ranges.back().rows += last - first;
  }
  return ranges;
}

void fill_cluster(std::vector<DecodeTile>& tiles) {
  while (tiles.size() % kClusterBlocks != 0) {
    tiles.push_back(tiles.back());
    tiles.back().rows = 0;
  }
}

}  // namespace

CudaChunk whole_batch(const SequenceBatch& batch, const int32_t* counts) {
  CudaChunk chunk;
  chunk.sequences = batch.count;
  for (int s = 0; s < batch.count; ++s) chunk.first_row.push_back(chunk.rows += rollouts_of(counts, s));
  return chunk;
}

bool is_one_chunk(const CudaMemory& memory, const MeasureChunk& measure, int sequences, int64_t rows) {
  if (rows > std::numeric_limits<int>::max()) return false;
  const ChunkNeed need = measure(sequences, static_cast<int>(rows));
  return need.device <= memory.available() && std::max(need.upload, need.download) <= kStagingBytes &&
         need.pairs <= kMostPairs;
}

std::vector<CudaChunk> cut_into_chunks(CudaMemory& memory, const SequenceBatch& batch, const int32_t* counts,
                                       const MeasureChunk& measure) {
  const int64_t rows = count_rollouts(counts, batch.count);
  if (memory.holds() && !is_one_chunk(memory, measure, 1, 1)) memory.let_go();
  Cutter cutter{memory, measure, is_one_chunk(memory, measure, batch.count, rows)};
  for (int s = 0; s < batch.count; ++s) cutter.add(s, rollouts_of(counts, s));
  return cutter.finish();
}

ChunkShape at_most(ChunkShape shape, const SequenceBatch& batch, int sequences, int rows) {
  shape.n = batch.n;
  shape.width = batch.width();
  shape.steps = batch.steps();
  shape.sequences = sequences;
  shape.rows = rows;
  const int sets = batch.count == 0 ? 0 : batch.set_of(batch.count - 1) - batch.set_of(0) + 1;
  shape.sequence_ranges = std::min(sequences, sets);
  shape.row_ranges = std::min(shape.sequence_ranges, rows);
  // A cluster's last tiles may be empty.
  shape.tiles = shape.decode ? rows + (kClusterBlocks - 1) * shape.row_ranges : 0;
  shape.numbers = batch.capacities != nullptr ? batch.numbers_each() : 0;
  return shape;
}

ChunkArrays::ChunkArrays(Placement& placement, const ChunkShape& shape) {
  const size_t s = shape.sequences, r = shape.rows, n = shape.n, before = placement.bytes();
  block = placement.next();
  features = placement.take<float>(s * n * shape.width);
  item_weights = placement.take<double>(s * shape.numbers);
  capacities = placement.take<double>(shape.numbers > 0 ? s : 0);
  first_row = placement.take<int32_t>(s + 1);
  sequence_of = placement.take<int32_t>(r);
  keys = placement.take<uint64_t>(shape.sampling ? s : 0);
  first_samples = placement.take<uint32_t>(shape.sampling ? s : 0);
  orders = placement.take<int32_t>(shape.orders ? r * shape.steps : 0);
  weights = placement.take<float>(shape.weights ? r : 0);
  sequence_ranges = {placement.take<SetRange>(shape.sequence_ranges), shape.sequence_ranges, shape.sequences};
  row_ranges = {placement.take<SetRange>(shape.row_ranges), shape.row_ranges, shape.rows};
  tiles = placement.take<DecodeTile>(shape.tiles);
  stop = placement.take<int32_t>(1);
  bytes = placement.bytes() - before;
}

ChunkPlan::ChunkPlan(const SequenceBatch& batch_, const CudaChunk& chunk_, const ChunkShape& flags,
                     const TileShape& tile_shape_)
    : batch(batch_),
      chunk(chunk_),
      sequence_ranges(ranges_of(batch, chunk, [](int s) { return std::pair(s, s + 1); })),
      row_ranges(ranges_of(batch, chunk,
                           [&](int s) { return std::pair(chunk.first_row[s], chunk.first_row[s + 1]); })),
      tile_shape(tile_shape_),
      shape(at_most(flags, batch, chunk.sequences, chunk.rows)) {
  if (tile_shape.tiling.rows > 0) tiles = cut_into_tiles(batch, chunk, tile_shape);
  shape.sequence_ranges = static_cast<int>(sequence_ranges.size());
  shape.row_ranges = static_cast<int>(row_ranges.size());
  shape.tiles = static_cast<int>(tiles.size());
}

void stage(DeviceStream& stream, const ChunkPlan& plan, size_t bytes,
           const std::function<void(const ChunkArrays&)>& fill) {
  const SequenceBatch& batch = plan.batch;
  const CudaChunk& chunk = plan.chunk;
  const size_t first = chunk.first_sequence, s = plan.shape.sequences, n = plan.shape.n;
  Placement staged(stream.uploads.reserve(bytes));
  const ChunkArrays to(staged, plan.shape);
  std::copy_n(batch.features_of(chunk.first_sequence), s * n * plan.shape.width, to.features);
  if (plan.shape.numbers > 0) {
    std::copy_n(batch.weights + first * plan.shape.numbers, s * plan.shape.numbers, to.item_weights);
    std::copy_n(batch.capacities + first, s, to.capacities);
  }
  std::copy(chunk.first_row.begin(), chunk.first_row.end(), to.first_row);
  for (int i = 0; i < chunk.sequences; ++i) {
    std::fill(to.sequence_of + chunk.first_row[i], to.sequence_of + chunk.first_row[i + 1], i);
  }
  std::copy(plan.sequence_ranges.begin(), plan.sequence_ranges.end(), to.sequence_ranges.data);
  std::copy(plan.row_ranges.begin(), plan.row_ranges.end(), to.row_ranges.data);
  std::copy(plan.tiles.begin(), plan.tiles.end(), to.tiles);
  *to.stop = 0;
  fill(to);
}

void upload(DeviceStream& stream, const ChunkPlan& plan, const ChunkArrays& inputs,
            const std::function<void(const ChunkArrays&)>& fill) {
  if (!stream.uploads_are_read) stream.synchronize();
  stream.uploads_are_read = false;
  stage(stream, plan, inputs.bytes, fill);
  stream.upload(inputs.block, stream.uploads.data(), inputs.bytes);
}

DecodeLoad decode_load(const SequenceBatch& batch, const CudaChunk& chunk) {
  DecodeLoad load{.one_each = true};
  int last_set = -1;
  bool joins = false;  // a sequence with one rollout may share the tile before it
  for (int s = 0; s < chunk.sequences; ++s) {
    const int count = chunk.first_row[s + 1] - chunk.first_row[s];
    const int set = batch.set_of(chunk.first_sequence + s);
    load.rollouts += count;
    load.one_each &= count <= 1;
    load.sets += count > 0 && set != last_set;
    load.parts += count > 1 || (count == 1 && !(joins && set == last_set));
    if (count > 0) last_set = set;
    joins = count == 1;
  }
  return load;
}

std::vector<DecodeTile> cut_into_tiles(const SequenceBatch& batch, const CudaChunk& chunk,
                                       const TileShape& shape) {
  const int tile_rows = shape.tiling.rows, pieces = std::max(1, shape.blocks / std::max(1, chunk.sequences));
  std::vector<DecodeTile> tiles;
  for (int s = 0; s < chunk.sequences; ++s) {
    const int set = batch.set_of(chunk.first_sequence + s), first = s == 0 ? chunk.skipped : 0;
    const int count = chunk.first_row[s + 1] - chunk.first_row[s];
    DecodeTile* last = tiles.empty() ? nullptr : &tiles.back();
    if (count == 1 && last != nullptr && last->sequence_step == 1 && last->set == set &&
        last->first == first && last->sequence + last->rows == s && last->rows < tile_rows) {
      ++last->rows;
      continue;
    }
    if (shape.tiling.in_clusters && last != nullptr && last->set != set) fill_cluster(tiles);
    const int most = shape.samples == 0
                         ? tile_rows
                         : std::min(std::max((count + pieces - 1) / pieces, tile_rows), shape.samples);
    for (int row = 0; row < count; row += most) {
      tiles.push_back({set, s, count == 1 ? 1 : 0, first + row, std::min(most, count - row),
                       int64_t{chunk.first_row[s]} + row});
    }
  }
  if (shape.tiling.in_clusters) fill_cluster(tiles);
  return tiles;
}

}  // namespace pointsman::cuda
