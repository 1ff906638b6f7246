// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/prepare_parameters.cuh"

namespace pointsman::cuda {
namespace {

void transpose(const TransposeArgs& args, int columns, int sets, cudaStream_t stream) {
  const dim3 grid(columns / kTransposeTile, kHidden / kTransposeTile, sets);
  launch(transpose_kernel, grid, dim3(kTransposeThreads), kTransposeShared, stream, args);
}

}  // namespace

void prepare_lstm(SetArray parameters, LstmOffsets offsets, PreparedLstm prepared, int sets,
                  cudaStream_t stream) {
  transpose({parameters, offsets.weight_hh, prepared.recurrent, 0, kGates}, kGates, sets, stream);
  launch(fold_input_kernel, dim3(kGates / kFoldRows, sets), dim3(kFoldThreads), kFoldShared, stream,
         parameters, offsets, prepared);
}

void prepare_square(SetArray parameters, int64_t offset, MutableSetArray prepared, int column_offset,
                    int width, int sets, cudaStream_t stream) {
  transpose({parameters, offset, prepared, column_offset, width}, kHidden, sets, stream);
}

}  // namespace pointsman::cuda
