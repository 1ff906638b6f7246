// SPDX-License-Identifier: Apache-2.0
// The oracle: the network of Bello et al. 2017 in plain double loops, written from the paper's formulas
// without any of the engine's identities (nothing folded, nothing factored, nothing shared), and its
// gradients by a plain reversal of the same loops. Slow on purpose; the engine is compared with it and it is
// compared with finite differences.
//
// All matrices are row-major [out, in] with the names of models/parameter_layout.h; LSTM gate order i, f, g,
// o.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/own.h"
#include "kernels/common/problem_kind.h"
#include "models/config.h"
#include "models/parameter_layout.h"

namespace pointsman::reference {

using Vector = std::vector<double>;

double dot(const double* a, const double* b, int size);

// A model in double. Gradients are vectors of the same layout.
class Network {
 public:
  Network(const ModelConfig& config, const std::vector<float>& parameters);  // [ParameterLayout(config).size]
  Network(const ModelConfig& config, Vector parameters);

  // Offset of a tensor in `parameters` by its name in the model file. Throws std::out_of_range for an unknown
  // one.
  size_t offset(const std::string& name) const;
  const double* tensor(const std::string& name) const { return parameters.data() + offset(name); }
  size_t tensor_size(const std::string& name) const;

  ModelConfig config;
  ParameterLayout layout;
  Vector parameters;
};

// One input sequence, as the network reads it.
struct Sequence {
  ProblemKind problem = ProblemKind::kTsp;
  Vector features;  // [n][width()]: x, y; weight, value; or x, y, demand, the depot first; in network units
  // KnapSack, and demands of CVRP: [n], in the capacity's units. TSPTW: [n + 3][n], the ways from each place,
  // when the places open, when they close, and how long visits take. Colouring: [n][n], not 0 where joined.
  // ATSP: [2][n][n], the ways in units of their mean, and the shares in the assignment problem of all.
  Vector weights;
  double capacity = 0.0;  // TSPTW: the units of these in one network unit; a stretch: its cities, at most
  const OwnDeclared* own =
      nullptr;  // of a user's own problem, with the items [n][width()] in the user's units
  Vector items = {};

  int width() const {
    return own != nullptr                                                        ? own->width
           : problem == ProblemKind::kAtsp                                       ? 14
           : problem == ProblemKind::kStretch                                    ? 8
           : problem == ProblemKind::kTsptw                                      ? 4
           : problem == ProblemKind::kCvrp || problem == ProblemKind::kColouring ? 3
                                                                                 : 2;
  }
  int n() const { return static_cast<int>(features.size()) / width(); }
};

struct Options {
  double temperature = 1.0;
  double clip = 0.0;  // C; 0: the model's own
  bool stop_at_first_misfit = false;
  bool masks = true;  // TSPTW
  // What every W_ref r_i is off by, up or down as this seed's random numbers say.
  double reference_error = 0.0;
  uint32_t reference_seed = 0;
};

// One decoding step. Vectors are by item, [n]; items that are no candidates have probability 0 and logit
// -infinity.
struct Step {
  std::vector<int> candidates;  // ascending
  Vector scores;                // u of the pointer, before centring and clip; 0 where no candidate
  Vector tanh_u;                // of the centred scores; likewise
  Vector logits;                // (C tanh(u) + prior) / T
  Vector probabilities;
};

struct Rollout {
  std::vector<int> order;   // items taken
  std::vector<Step> steps;  // order.size() of them; under the literal rule one more when a misfit was chosen
  double log_prob = 0.0;    // sum over the items taken: a misfit that ends the packing is not counted
};

// --- Operations ---

struct LstmStep {
  Vector input, hidden_before, cell_before;  // what went in
  Vector i, f, g, o;                         // gates after their nonlinearity, [H] each
  Vector cell, hidden;                       // what comes out
};

// weight_ih [4H, inputs], weight_hh [4H, H], bias [4H].
LstmStep lstm_step(const double* weight_ih, const double* weight_hh, const double* bias, const Vector& input,
                   const Vector& hidden, const Vector& cell);

// Softmax over the candidates; 0 elsewhere.
Vector softmax(const Vector& scores, const std::vector<int>& candidates);

// --- Network ---

// One layer of the attention encoder; [n] vectors unless noted.
struct EncoderLayer {
  std::vector<Vector> x, normed, qkv;  // [H], [H], [3H]
  std::vector<std::vector<Vector>> p;  // [heads][n] vectors [n], how much item i attends to each item
  std::vector<Vector> attended, residual, normed_residual, hidden;  // [H], [H], [H], [F]
};

struct Encoding {
  std::vector<LstmStep> steps;       // [n] of Encoder::kLstm
  std::vector<EncoderLayer> layers;  // of Encoder::kAttention, as is the mean
  std::vector<Vector>
      references;  // [n] vectors [H], r_i of the paper: steps[i].hidden or the last layer's x'
  Vector mean;     // of the references
  Vector start_hidden, start_cell;  // of the decoder
};

// The layers of the attention encoder over the embedded items, and the start state.
Encoding encode_by_attention(const Network& network, const Sequence& sequence);
// Its reverse: gradients of the references and of the start state.
void encode_by_attention_backward(const Network& network, const Sequence& sequence, const Encoding& encoding,
                                  std::vector<Vector> d_references, Vector d_hidden, Vector d_cell,
                                  Vector& gradient);

// network_name: "actor" or "critic".
Encoding encode(const Network& network, const std::string& network_name, const Sequence& sequence);

// Items that may be chosen after `order`: TSP and the literal rule all that are left, KnapSack those that
// still fit; CVRP customers that still fit and, after a customer and before the last, the depot; TSPTW first
// the depot, then places after which each two others can still be reached in time, or if there are none all;
// colouring by turns a node and, for its colour, the node that has had this one first; a stretch item 1, item
// 0, then as many others as it may have.
std::vector<int> candidates_after(const Sequence& sequence, const std::vector<int>& order,
                                  const Options& options);

// The given order, step by step. Trailing -1 are ignored. Throws std::invalid_argument for an order that is
// not a possible rollout (an item twice, one that does not fit).
Rollout forced(const Network& network, const Sequence& sequence, std::span<const int> order,
               const Options& options = {});

// Argmax at each step; ties go to the lowest index.
Rollout greedy(const Network& network, const Sequence& sequence, const Options& options = {});

// Length of the tour or of the routes in network units, or minus the packed value; TSPTW: with kLatePenalty
// where it is late; colouring: the number of colours.
double cost(const Sequence& sequence, const std::vector<int>& order);

// b(s): P = 3 unmasked glimpses over the critic's own encoding, then fc2(relu(fc1 q)).
double critic_value(const Network& network, const Sequence& sequence);

// --- Gradients ---

// gradient += d(weight * log p(order | sequence)) / dparameters.
void add_log_prob_gradient(const Network& network, const Sequence& sequence, std::span<const int> order,
                           double weight, const Options& options, Vector& gradient);

// gradient += d(weight * (b(s) - target)^2) / dparameters.
void add_critic_gradient(const Network& network, const Sequence& sequence, double target, double weight,
                         Vector& gradient);

}  // namespace pointsman::reference
