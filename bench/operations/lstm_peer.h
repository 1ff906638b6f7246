// SPDX-License-Identifier: Apache-2.0
// The rival of the LSTM kernels: cuDNN, one variant for each algorithm and math type that it offers. Built
// without cuDNN, there are no variants.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <string>
#include <vector>

namespace pointsman::bench {

struct LstmProblem {
  int batch, steps;
  const float* recurrent;  // device, [4H][H]
  const float* input;      // device, [4H][2]
  const float* bias;       // device, [4H]
  const float* x;          // device, [steps][batch][2]
  const float* dy;         // device, [steps][batch][H]
};

// In host memory, in the layout of LstmProblem.
struct LstmAnswer {
  std::vector<float> y;          // [steps][batch][H]
  std::vector<float> recurrent;  // gradients
  std::vector<float> input, bias;
};

class LstmPeer {
 public:
  virtual ~LstmPeer() = default;
  virtual void infer() = 0;         // the forward pass; enqueues only, as the other two
  virtual void keep() = 0;          // the forward pass with what the backward pass needs
  virtual void backward() = 0;      // after keep(): gradients of inputs and weights
  virtual LstmAnswer answer() = 0;  // after keep() and backward()
};

struct PeerVariant {
  std::string name;
  int algorithm;
  bool tf32, padded;
};

std::vector<PeerVariant> peer_variants();

// Throws std::runtime_error with the peer's own words when it does not offer this.
std::unique_ptr<LstmPeer> make_lstm_peer(const PeerVariant& variant, const LstmProblem& problem,
                                         cudaStream_t stream);

}  // namespace pointsman::bench
