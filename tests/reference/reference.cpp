// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

#include "kernels/common/policy.h"

namespace pointsman::reference {

double dot(const double* a, const double* b, int size) {
  constexpr int kSums = 8;  // a single one waits for every addition
  double sums[kSums] = {};
  int k = 0;
  for (; k + kSums <= size; k += kSums) {
    for (int j = 0; j < kSums; ++j) sums[j] += a[k + j] * b[k + j];
  }
  for (; k < size; ++k) sums[0] += a[k] * b[k];
  return std::accumulate(sums, sums + kSums, 0.0);
}

namespace {

constexpr int kH = kHidden;
constexpr int kProcessSteps = 3;  // P of the critic

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// matrix [rows, x.size()] times x.
Vector multiply(const double* matrix, int rows, const Vector& x) {
  const int columns = static_cast<int>(x.size());
  Vector y(rows);
  for (int row = 0; row < rows; ++row) y[row] = dot(matrix + row * columns, x.data(), columns);
  return y;
}

// The reverse of y = matrix x: d_matrix += dy x^T, dx += matrix^T dy.
void multiply_backward(const double* matrix, const Vector& x, const Vector& dy, double* d_matrix,
                       Vector& dx) {
  const int columns = static_cast<int>(x.size());
  for (int row = 0; row < static_cast<int>(dy.size()); ++row) {
    for (int column = 0; column < columns; ++column) {
      d_matrix[row * columns + column] += dy[row] * x[column];
      dx[column] += dy[row] * matrix[row * columns + column];
    }
  }
}

void add(Vector& sum, const Vector& term) {
  for (size_t k = 0; k < sum.size(); ++k) sum[k] += term[k];
}

std::vector<int> all_items(int n) {
  std::vector<int> items(n);
  std::iota(items.begin(), items.end(), 0);
  return items;
}

Vector features_of(const Sequence& sequence, int item) {
  const auto begin = sequence.features.begin() + sequence.width() * item;
  return {begin, begin + sequence.width()};
}

// sum_i p_i r_i
Vector readout(const Vector& p, const std::vector<Vector>& references, const std::vector<int>& candidates) {
  Vector g(kH, 0.0);
  for (int i : candidates) {
    for (int d = 0; d < kH; ++d) g[d] += p[i] * references[i][d];
  }
  return g;
}

struct LstmTensors {
  const double *weight_ih, *weight_hh, *bias;
};

LstmTensors lstm_tensors(const Network& network, const std::string& prefix) {
  return {network.tensor(prefix + ".weight_ih"), network.tensor(prefix + ".weight_hh"),
          network.tensor(prefix + ".bias")};
}

// The three tensors of an attention, where their gradients go, and the references, which every step projects
// alike.
struct Attention {
  const double *w_ref, *w_q, *v;
  size_t at_w_ref, at_w_q, at_v;
  std::vector<Vector> projected;  // [n] vectors [H], W_ref r_i

  Attention(const Network& network, const std::string& prefix, const std::vector<Vector>& references,
            const Options& options = {})
      : w_ref(network.tensor(prefix + ".w_ref")),
        w_q(network.tensor(prefix + ".w_q")),
        v(network.tensor(prefix + ".v")),
        at_w_ref(network.offset(prefix + ".w_ref")),
        at_w_q(network.offset(prefix + ".w_q")),
        at_v(network.offset(prefix + ".v")) {
    std::mt19937 random(options.reference_seed + static_cast<uint32_t>(at_w_ref));
    for (const Vector& reference : references) {
      projected.push_back(multiply(w_ref, kH, reference));
      for (double& a : projected.back())
        a += random() % 2 ? options.reference_error : -options.reference_error;
    }
  }
};

// u_i = v . tanh(W_ref r_i + W_q q) for i in candidates, equation (8); 0 elsewhere.
Vector attention_scores(const Attention& a, const Vector& query, const std::vector<int>& candidates) {
  const Vector projected_query = multiply(a.w_q, kH, query);
  Vector scores(a.projected.size(), 0.0);
  for (int i : candidates) {
    for (int d = 0; d < kH; ++d) scores[i] += a.v[d] * std::tanh(a.projected[i][d] + projected_query[d]);
  }
  return scores;
}

// One glimpse: p = softmax(scores(query)), g = sum p_i r_i.
struct Glimpse {
  Vector query, p, g;
};

Glimpse make_glimpse(const Attention& a, const std::vector<Vector>& references, const Vector& query,
                     const std::vector<int>& candidates) {
  Glimpse result;
  result.query = query;
  result.p = softmax(attention_scores(a, query, candidates), candidates);
  result.g = readout(result.p, references, candidates);
  return result;
}

// Everything one decoding step computed.
struct DecoderStep {
  LstmStep lstm;
  std::vector<Glimpse> glimpses;
  Vector pointer_query;
  Step step;
};

bool is_tour_or_path(const Sequence& sequence) {
  return sequence.problem == ProblemKind::kTsp || sequence.problem == ProblemKind::kPath;
}

// After `order`; of CVRP since the depot.
double capacity_left(const Sequence& sequence, const std::vector<int>& order) {
  double left = sequence.capacity;
  for (int taken : order)
    left = sequence.problem == ProblemKind::kCvrp && taken == 0 ? sequence.capacity
                                                                : left - sequence.weights[taken];
  return left;
}

// Of TSPTW and ATSP, in the units of `weights`.
double way(const Sequence& s, int from, int to) { return s.weights[from * s.n() + to]; }
double opens(const Sequence& s, int place) { return s.weights[s.n() * s.n() + place]; }
double closes(const Sequence& s, int place) { return s.weights[s.n() * (s.n() + 1) + place]; }
double visit(const Sequence& s, int place) { return s.weights[s.n() * (s.n() + 2) + place]; }
double arrival_after(const Sequence& s, std::vector<int> order, int next) {
  order.push_back(next);
  double arrival = opens(s, 0);
  for (size_t i = 1; i < order.size(); ++i) {
    const double left = std::max(arrival, opens(s, order[i - 1])) + visit(s, order[i - 1]);
    arrival = left + way(s, order[i - 1], order[i]);
  }
  return arrival;
}
// The least time that remains at `next`, gone to straight from there at each other place of what is left, and
// at the second of two of these but the depot, in the better order.
double time_left(const Sequence& s, const std::vector<int>& order, int next) {
  std::vector<int> with = order;
  with.push_back(next);
  double least = closes(s, next) - arrival_after(s, order, next);
  for (int other = 0; other < s.n(); ++other) {
    const auto is_left = [&](int place) { return std::find(with.begin(), with.end(), place) == with.end(); };
    if (other != 0 && !is_left(other)) continue;
    least = std::min(least, closes(s, other) - arrival_after(s, with, other));
    const auto after = [&](int first, int second) {
      std::vector<int> both = with;
      both.push_back(first);
      return closes(s, second) - arrival_after(s, both, second);
    };
    for (int second = 1; second < other; ++second) {
      if (is_left(second)) least = std::min(least, std::max(after(other, second), after(second, other)));
    }
  }
  return least;
}

// Of a colouring: what is pointed at by turns is a node, and the node that has had its colour first.
bool are_joined(const Sequence& s, int a, int b) { return s.weights[a * s.n() + b] != 0.0; }
bool comes_a_colour(const std::vector<int>& order) { return order.size() % 2 == 1; }
// By node the one that has had its colour first, or -1.
std::vector<int> first_of_colours(const Sequence& s, const std::vector<int>& order) {
  std::vector<int> firsts(s.n(), -1);
  for (size_t t = 0; t + 1 < order.size(); t += 2) firsts[order[t]] = order[t + 1];
  return firsts;
}
// In the order they came into use.
std::vector<int> colours_in_use(const std::vector<int>& order) {
  std::vector<int> firsts;
  for (size_t t = 0; t + 1 < order.size(); t += 2) {
    if (order[t] == order[t + 1]) firsts.push_back(order[t]);
  }
  return firsts;
}
bool has_neighbour_of(const Sequence& s, const std::vector<int>& firsts, int node, int colour) {
  for (int other = 0; other < s.n(); ++other) {
    if (are_joined(s, node, other) && firsts[other] == colour) return true;
  }
  return false;
}
std::vector<int> colouring_candidates(const Sequence& s, const std::vector<int>& order) {
  const std::vector<int> firsts = first_of_colours(s, order);
  std::vector<int> candidates;
  for (int i = 0; i < s.n(); ++i) {
    const bool is_fit =
        comes_a_colour(order)
            ? i == order.back() || (firsts[i] == i && !has_neighbour_of(s, firsts, order.back(), i))
            : firsts[i] < 0;
    if (is_fit) candidates.push_back(i);
  }
  return candidates;
}
Vector colouring_priors(const Sequence& s, const std::vector<int>& order, int candidate) {
  const std::vector<int> firsts = first_of_colours(s, order), colours = colours_in_use(order);
  const int node = comes_a_colour(order) ? order.back() : candidate;
  int seen = 0, open = 0, lost = 0;
  for (const int colour : colours) seen += has_neighbour_of(s, firsts, node, colour);
  for (int other = 0; other < s.n(); ++other) {
    if (!are_joined(s, node, other) || firsts[other] >= 0) continue;
    ++open;
    lost += !has_neighbour_of(s, firsts, other, candidate);
  }
  const double n = s.n();
  if (!comes_a_colour(order)) return {seen * 1.0, open / n, 0.0, 0.0, 0.0};
  const auto number = std::find(colours.begin(), colours.end(), candidate) - colours.begin();
  return {0.0, 0.0, candidate == node ? -1.0 : 0.0, -lost / n, -static_cast<double>(number) / n};
}

// What the decoder reads of the state beside the last item.
Vector context_of(const Sequence& sequence, const std::vector<int>& order) {
  if (sequence.own != nullptr) {
    Vector sums(sequence.width(), 0.0);
    for (int item : order) {
      for (int f = 0; f < sequence.width(); ++f)
        sums[f] += sequence.features[item * sequence.width() + f] / sequence.n();
    }
    return sums;
  }
  if (sequence.problem == ProblemKind::kTsptw) {
    if (order.empty()) return {0.0};
    const std::vector<int> before(order.begin(), order.end() - 1);
    const double now =
        std::max(arrival_after(sequence, before, order.back()), opens(sequence, order.back())) +
        visit(sequence, order.back());
    return {(now - opens(sequence, 0)) / sequence.capacity * 2.0 / sequence.n()};
  }
  if (sequence.problem == ProblemKind::kColouring) {
    const double n = sequence.n();
    return {comes_a_colour(order) ? 1.0 : 0.0, static_cast<double>(order.size() / 2) / n,
            static_cast<double>(colours_in_use(order).size()) / n};
  }
  if (sequence.problem != ProblemKind::kCvrp) return {};
  return {capacity_left(sequence, order) / sequence.capacity};
}

// Of ATSP: the scaling of each column that is left open after `order`, by item, 0 of the others. The open
// rows are the present city's and those of cities not yet visited, the open columns these cities' and the
// first's.
Vector column_scaling(const Sequence& sequence, const std::vector<int>& order) {
  const int n = sequence.n();
  const auto share = [&](int from, int to) { return sequence.weights[(n + from) * n + to]; };
  Vector scaling(n, 1.0);
  std::vector<int> left = all_items(n);
  for (size_t t = 0; t < order.size(); ++t) {
    left.erase(std::find(left.begin(), left.end(), order[t]));
    if (t > 0) scaling[order[t]] = 0.0;
    if (left.size() < 2) continue;
    std::vector<int> rows = left, columns = left;
    rows.push_back(order[t]);
    columns.push_back(order[0]);
    const auto joins = [&](int from, int to) { return from != to && !(from == order[t] && to == order[0]); };
    for (int sweep = 0; sweep < 4; ++sweep) {
      std::map<int, double> row_sums, column_sums;
      for (int i : rows) {
        for (int j : columns)
          if (joins(i, j)) row_sums[i] += share(i, j) * scaling[j];
      }
      for (int j : columns) {
        for (int i : rows)
          if (joins(i, j)) column_sums[j] += share(i, j) / row_sums[i];
        scaling[j] = 1.0 / column_sums[j];
      }
      const double most = *std::max_element(scaling.begin(), scaling.end());
      for (int j : columns) scaling[j] = std::max(scaling[j] / most, 1e-15);
    }
  }
  return scaling;
}

// Of ATSP: what AtspRules::priors() says of each candidate.
std::vector<Vector> way_priors(const Sequence& sequence, const std::vector<int>& order,
                               std::span<const int> candidates) {
  const int n = sequence.n();
  const auto length = [&](int from, int to) { return sequence.weights[from * n + to] * n / 10.0; };
  std::vector<Vector> priors(candidates.size(), Vector(6, 0.0));
  if (order.empty()) return priors;
  const int last = order.back(), first = order.front();
  const Vector scaling = column_scaling(sequence, order);
  const auto share = [&](int to) { return sequence.weights[(n + last) * n + to]; };
  double total = 0.0;
  for (int i : candidates) total += share(i) * scaling[i];
  for (size_t c = 0; c < candidates.size(); ++c) {
    const int i = candidates[c];
    double into = 8.0, onward = length(i, first);
    for (int other : candidates) {
      if (other == i) continue;
      into = std::min(into, length(other, i));
      onward = std::min(onward, length(i, other));
    }
    priors[c] = {-std::min(length(last, i), 8.0),
                 std::log(share(i)),
                 std::log(share(i) * scaling[i] / total),
                 into,
                 -std::min(onward, 8.0),
                 std::min(length(i, first), 8.0)};
  }
  return priors;
}

double distance(const Sequence& sequence, int a, int b) {
  const Vector from = features_of(sequence, a), to = features_of(sequence, b);
  return std::hypot(from[0] - to[0], from[1] - to[1]);
}

double value_per_weight(const Sequence& sequence, int item) {
  return (sequence.features[2 * item + 1] + 1e-6) / (sequence.features[2 * item] + 1e-6);
}

// Of KnapSack: the most that items of items[k ..] are worth that fit in `room` together and have `with` among
// them; -1: any; below 0: none do.
double most_worth(const Sequence& sequence, const std::vector<int>& items, size_t k, double room, int with) {
  if (k == items.size()) return 0.0;
  const int item = items[k];
  double most = item == with ? -1e9 : most_worth(sequence, items, k + 1, room, with);
  if (sequence.weights[item] <= room) {
    most = std::max(most, sequence.features[2 * item + 1] +
                              most_worth(sequence, items, k + 1, room - sequence.weights[item], with));
  }
  return most;
}

// Of KnapSack: what its look ahead says of each candidate.
Vector look_ahead(const Sequence& sequence, double left, std::span<const int> candidates) {
  std::vector<int> seen;
  for (int i : candidates)
    if (sequence.weights[i] <= left) seen.push_back(i);
  std::stable_sort(seen.begin(), seen.end(), [&](int a, int b) {
    return value_per_weight(sequence, a) > value_per_weight(sequence, b);
  });
  seen.resize(std::min<size_t>(seen.size(), 8));
  double together = 0.0;
  for (int i : seen) together += sequence.weights[i];
  const double best = most_worth(sequence, seen, 0, left, -1);
  Vector ahead;
  for (int i : candidates) {
    const bool is_seen = std::find(seen.begin(), seen.end(), i) != seen.end();
    double less = sequence.weights[i] > left || together > left ? 0.1 : 0.0;
    if (is_seen && together > left) less = std::min(less, best - most_worth(sequence, seen, 0, left, i));
    ahead.push_back(-less);
  }
  return ahead;
}

// What the prior's weights are multiplied with, of each candidate.
std::vector<Vector> prior_features(const Sequence& sequence, const std::vector<int>& order,
                                   std::span<const int> candidates) {
  std::vector<Vector> features;
  if (is_tour_or_path(sequence)) {
    for (int i : candidates) {
      const double* here = &sequence.features[2 * i];
      const double* last = order.empty() ? here : &sequence.features[2 * order.back()];
      features.push_back({-std::hypot(here[0] - last[0], here[1] - last[1])});
    }
    return features;
  }
  if (sequence.problem == ProblemKind::kStretch) {
    for (int i : candidates) {
      const double* here = &sequence.features[8 * i];
      const double* last = order.empty() ? here : &sequence.features[8 * order.back()];
      features.push_back({-std::sqrt(sequence.n()) * std::hypot(here[0] - last[0], here[1] - last[1])});
    }
    return features;
  }
  if (sequence.problem == ProblemKind::kTsptw) {
    const auto in_units = [&](double time) { return std::clamp(time / sequence.capacity, -4.0, 4.0); };
    for (int i : candidates) {
      features.emplace_back(4, 0.0);
      if (order.empty()) continue;
      const double arrival = arrival_after(sequence, order, i);
      features.back() = {-in_units(way(sequence, order.back(), i)),
                         -in_units(std::max(opens(sequence, i) - arrival, 0.0)),
                         -in_units(closes(sequence, i) - arrival), in_units(time_left(sequence, order, i))};
    }
    return features;
  }
  if (sequence.problem == ProblemKind::kColouring) {
    for (int i : candidates) features.push_back(colouring_priors(sequence, order, i));
    return features;
  }
  if (sequence.problem == ProblemKind::kAtsp) return way_priors(sequence, order, candidates);
  const double left = capacity_left(sequence, order);
  if (sequence.problem == ProblemKind::kCvrp) {
    const int last = order.empty() ? 0 : order.back();
    for (int i : candidates) {
      const double there = distance(sequence, last, i);
      features.push_back({-there, distance(sequence, last, 0) + distance(sequence, 0, i) - there,
                          i == 0 ? -left / sequence.capacity : 0.0});
    }
    return features;
  }
  const Vector ahead = look_ahead(sequence, left, candidates);
  for (size_t j = 0; j < candidates.size(); ++j) {
    const int i = candidates[j];
    features.push_back({std::min(std::log(value_per_weight(sequence, i)), 8.0),
                        left > 0.0 ? sequence.weights[i] / left : 0.0, ahead[j]});
  }
  return features;
}

Step point(const Network& network, const Sequence& sequence, const Attention& pointer, const Vector& query,
           const std::vector<int>& order, std::vector<int> candidates, const Options& options) {
  const int n = sequence.n();
  Step step;
  step.candidates = std::move(candidates);
  step.scores = attention_scores(pointer, query, step.candidates);
  double mean = 0.0;
  if (network.config.centre_logits) {
    for (int i : step.candidates) mean += step.scores[i];
    mean /= static_cast<double>(step.candidates.size());
  }
  const double clip = options.clip > 0.0 ? options.clip : network.config.clip;
  step.logits.assign(n, -std::numeric_limits<double>::infinity());
  step.tanh_u.assign(n, 0.0);
  for (int i : step.candidates) {
    step.tanh_u[i] = std::tanh(step.scores[i] - mean);
    step.logits[i] = clip * step.tanh_u[i] / options.temperature;
  }
  if (network.layout.priors > 0) {
    const std::vector<Vector> features = prior_features(sequence, order, step.candidates);
    for (size_t j = 0; j < features.size(); ++j) {
      for (int k = 0; k < network.layout.priors; ++k)
        step.logits[step.candidates[j]] +=
            network.tensor("actor.prior.weight")[k] * features[j][k] / options.temperature;
    }
  }
  step.probabilities = softmax(step.logits, step.candidates);
  return step;
}

// The decoder, one step at a time.
struct Decoder {
  const Network& network;
  const Sequence& sequence;
  const Options& options;
  Encoding encoding = encode(network, "actor", sequence);
  Attention pointer = {network, "actor.pointer", encoding.references, options};
  // Without glimpses there are no such tensors.
  std::optional<Attention> glimpse =
      network.config.glimpses == 0
          ? std::nullopt
          : std::optional<Attention>({network, "actor.glimpse", encoding.references, options});
  std::vector<int> order = {};
  std::vector<DecoderStep> steps = {};

  DecoderStep& advance(std::vector<int> candidates) {
    const Vector& hidden = steps.empty() ? encoding.start_hidden : steps.back().lstm.hidden;
    const Vector& cell = steps.empty() ? encoding.start_cell : steps.back().lstm.cell;
    const double* start = network.tensor("actor.decoder.start");
    Vector input = order.empty() ? Vector(start, start + kH)
                                 : multiply(network.tensor("actor.embedding.weight"), kH,
                                            features_of(sequence, order.back()));
    if (const Vector context = context_of(sequence, order); !context.empty())
      add(input, multiply(network.tensor("actor.decoder.context.weight"), kH, context));
    const LstmTensors lstm = lstm_tensors(network, "actor.decoder");
    DecoderStep step;
    step.lstm = lstm_step(lstm.weight_ih, lstm.weight_hh, lstm.bias, input, hidden, cell);
    Vector query = step.lstm.hidden;
    for (int k = 0; k < network.config.glimpses; ++k) {
      step.glimpses.push_back(make_glimpse(*glimpse, encoding.references, query, candidates));
      query = step.glimpses.back().g;
    }
    step.pointer_query = query;
    step.step = point(network, sequence, pointer, query, order, std::move(candidates), options);
    steps.push_back(std::move(step));
    return steps.back();
  }
};

// Of a user's own problem.
bool is_as_declared(const Sequence& sequence, const std::vector<int>& order, int item) {
  const OwnDeclared& own = *sequence.own;
  const auto is_taken = [&](int other) {
    return std::find(order.begin(), order.end(), other) != order.end();
  };
  double weight = 0.0;
  for (int taken : order) weight += own.weight < 0 ? 0.0 : sequence.items[taken * own.width + own.weight];
  if (own.weight >= 0 && weight + sequence.items[item * own.width + own.weight] > own.capacity) return false;
  if (order.empty() && own.first >= 0 && item != own.first) return false;
  if (item == own.last && static_cast<int>(order.size()) + 1 != sequence.n()) return false;
  for (int i = own.begin == nullptr ? 0 : own.begin[item]; own.begin != nullptr && i < own.begin[item + 1];
       ++i) {
    if (!is_taken(own.before[i])) return false;
  }
  return true;
}

bool fits(const Sequence& sequence, const std::vector<int>& order, int item) {
  if (sequence.own != nullptr) return is_as_declared(sequence, order, item);
  const auto made = static_cast<int>(order.size());
  if (sequence.problem == ProblemKind::kStretch)
    return made < 2 ? item == 1 - made : item >= 2 && made < 2 + sequence.capacity;
  return is_tour_or_path(sequence) || sequence.problem == ProblemKind::kTsptw ||
         sequence.problem == ProblemKind::kAtsp || sequence.problem == ProblemKind::kColouring ||
         sequence.weights[item] <= capacity_left(sequence, order);
}

Rollout finish(Decoder&& decoder) {
  Rollout rollout;
  rollout.order = std::move(decoder.order);
  for (size_t t = 0; t < rollout.order.size(); ++t) {
    const Step& step = decoder.steps[t].step;
    double total = 0.0;
    double highest = -std::numeric_limits<double>::infinity();
    for (int i : step.candidates) highest = std::max(highest, step.logits[i]);
    for (int i : step.candidates) total += std::exp(step.logits[i] - highest);
    rollout.log_prob += step.logits[rollout.order[t]] - highest - std::log(total);
  }
  for (DecoderStep& step : decoder.steps) rollout.steps.push_back(std::move(step.step));
  return rollout;
}

Decoder decode_forced(const Network& network, const Sequence& sequence, std::span<const int> order,
                      const Options& options) {
  Decoder decoder{network, sequence, options};
  for (int item : order) {
    if (item < 0) break;
    std::vector<int> candidates = candidates_after(sequence, decoder.order, options);
    if (std::find(candidates.begin(), candidates.end(), item) == candidates.end() ||
        !fits(sequence, decoder.order, item)) {
      throw std::invalid_argument("item " + std::to_string(item) + " cannot be chosen at step " +
                                  std::to_string(decoder.order.size()));
    }
    decoder.advance(std::move(candidates));
    decoder.order.push_back(item);
  }
  return decoder;
}

// --- Backward ---

struct LstmGradient {
  Vector d_input, d_hidden_before, d_cell_before;
};

// The reverse of one LSTM step. d_hidden, d_cell: gradients of what came out.
LstmGradient lstm_step_backward(const Network& network, const std::string& prefix, const LstmStep& step,
                                const Vector& d_hidden, const Vector& d_cell, Vector& gradient) {
  const LstmTensors lstm = lstm_tensors(network, prefix);
  LstmGradient result{Vector(step.input.size(), 0.0), Vector(kH, 0.0), Vector(kH, 0.0)};
  Vector d_gates(4 * kH);
  for (int k = 0; k < kH; ++k) {
    const double tanh_cell = std::tanh(step.cell[k]);
    const double dc = d_cell[k] + d_hidden[k] * step.o[k] * (1.0 - tanh_cell * tanh_cell);
    d_gates[k] = dc * step.g[k] * step.i[k] * (1.0 - step.i[k]);
    d_gates[kH + k] = dc * step.cell_before[k] * step.f[k] * (1.0 - step.f[k]);
    d_gates[2 * kH + k] = dc * step.i[k] * (1.0 - step.g[k] * step.g[k]);
    d_gates[3 * kH + k] = d_hidden[k] * tanh_cell * step.o[k] * (1.0 - step.o[k]);
    result.d_cell_before[k] = dc * step.f[k];
  }
  multiply_backward(lstm.weight_ih, step.input, d_gates,
                    gradient.data() + network.offset(prefix + ".weight_ih"), result.d_input);
  multiply_backward(lstm.weight_hh, step.hidden_before, d_gates,
                    gradient.data() + network.offset(prefix + ".weight_hh"), result.d_hidden_before);
  double* d_bias = gradient.data() + network.offset(prefix + ".bias");
  for (int k = 0; k < 4 * kH; ++k) d_bias[k] += d_gates[k];
  return result;
}

// The reverse of attention_scores: d_scores [n] to the tensors, the references and the query.
void attention_scores_backward(const Attention& a, const std::vector<Vector>& references, const Vector& query,
                               const std::vector<int>& candidates, const Vector& d_scores,
                               std::vector<Vector>& d_references, Vector& d_query, Vector& gradient) {
  const Vector projected_query = multiply(a.w_q, kH, query);
  for (int i : candidates) {
    Vector d_sum(kH);
    for (int d = 0; d < kH; ++d) {
      const double e = std::tanh(a.projected[i][d] + projected_query[d]);
      gradient[a.at_v + d] += d_scores[i] * e;
      d_sum[d] = d_scores[i] * a.v[d] * (1.0 - e * e);
    }
    multiply_backward(a.w_ref, references[i], d_sum, &gradient[a.at_w_ref], d_references[i]);
    multiply_backward(a.w_q, query, d_sum, &gradient[a.at_w_q], d_query);
  }
}

// The reverse of make_glimpse: dg to the query (returned), the tensors and the references.
Vector glimpse_backward(const Attention& a, const std::vector<Vector>& references, const Glimpse& glimpse,
                        const std::vector<int>& candidates, const Vector& dg,
                        std::vector<Vector>& d_references, Vector& gradient) {
  Vector dp(references.size(), 0.0);
  double mean = 0.0;
  for (int i : candidates) {
    for (int d = 0; d < kH; ++d) d_references[i][d] += glimpse.p[i] * dg[d];
    dp[i] = dot(dg.data(), references[i].data(), kH);
    mean += glimpse.p[i] * dp[i];
  }
  Vector d_scores(references.size(), 0.0);
  for (int i : candidates) d_scores[i] = glimpse.p[i] * (dp[i] - mean);
  Vector d_query(kH, 0.0);
  attention_scores_backward(a, references, glimpse.query, candidates, d_scores, d_references, d_query,
                            gradient);
  return d_query;
}

// d(weight * log p(chosen)) / d(scores before centring), [n].
Vector pointer_scores_gradient(const Network& network, const Step& step, int chosen, double weight,
                               const Options& options) {
  const double clip = options.clip > 0.0 ? options.clip : network.config.clip;
  Vector d_scores(step.logits.size(), 0.0);
  double mean = 0.0;
  for (int i : step.candidates) {
    const double tanh_u = step.tanh_u[i];
    const double d_logit = weight * ((i == chosen ? 1.0 : 0.0) - step.probabilities[i]);
    d_scores[i] = d_logit * clip / options.temperature * (1.0 - tanh_u * tanh_u);
    mean += d_scores[i] / static_cast<double>(step.candidates.size());
  }
  if (network.config.centre_logits) {
    for (int i : step.candidates) d_scores[i] -= mean;
  }
  return d_scores;
}

// The reverse of encode: gradients of the references and of the last state.
void encode_backward(const Network& network, const std::string& name, const Sequence& sequence,
                     const Encoding& encoding, const std::vector<Vector>& d_references, Vector d_hidden,
                     Vector d_cell, Vector& gradient) {
  if (name == "actor" && network.config.encoder == Encoder::kAttention) {
    encode_by_attention_backward(network, sequence, encoding, d_references, std::move(d_hidden),
                                 std::move(d_cell), gradient);
    return;
  }
  const double* embedding = network.tensor(name + ".embedding.weight");
  double* d_embedding = gradient.data() + network.offset(name + ".embedding.weight");
  for (int i = sequence.n() - 1; i >= 0; --i) {
    add(d_hidden, d_references[i]);
    LstmGradient back =
        lstm_step_backward(network, name + ".encoder", encoding.steps[i], d_hidden, d_cell, gradient);
    Vector unused(sequence.width(), 0.0);
    multiply_backward(embedding, features_of(sequence, i), back.d_input, d_embedding, unused);
    d_hidden = std::move(back.d_hidden_before);
    d_cell = std::move(back.d_cell_before);
  }
}

// The attention half of one decoding step in reverse; returns the gradient of the decoder's hidden state.
Vector decoder_attention_backward(const Decoder& decoder, const DecoderStep& step, int chosen, double weight,
                                  std::vector<Vector>& d_references, Vector& gradient) {
  const Network& network = decoder.network;
  const std::vector<Vector>& references = decoder.encoding.references;
  const std::vector<int>& candidates = step.step.candidates;
  Vector d_query(kH, 0.0);
  attention_scores_backward(decoder.pointer, references, step.pointer_query, candidates,
                            pointer_scores_gradient(network, step.step, chosen, weight, decoder.options),
                            d_references, d_query, gradient);
  for (size_t k = step.glimpses.size(); k-- > 0;) {
    d_query = glimpse_backward(*decoder.glimpse, references, step.glimpses[k], candidates, d_query,
                               d_references, gradient);
  }
  return d_query;
}

// What the critic computed on the way to its value.
struct CriticTape {
  Encoding encoding;
  std::vector<Glimpse> glimpses;
  Vector before_relu, activated;
  double value = 0.0;
};

CriticTape run_critic(const Network& network, const Sequence& sequence) {
  CriticTape tape;
  tape.encoding = encode(network, "critic", sequence);
  const std::vector<int> items = all_items(sequence.n());
  Vector query = tape.encoding.references.back();
  const Attention process(network, "critic.process", tape.encoding.references);
  for (int step = 0; step < kProcessSteps; ++step) {
    tape.glimpses.push_back(make_glimpse(process, tape.encoding.references, query, items));
    query = tape.glimpses.back().g;
  }
  tape.before_relu = multiply(network.tensor("critic.head.fc1.weight"), kH, query);
  add(tape.before_relu,
      Vector(network.tensor("critic.head.fc1.bias"), network.tensor("critic.head.fc1.bias") + kH));
  for (double x : tape.before_relu) tape.activated.push_back(std::max(x, 0.0));
  tape.value = multiply(network.tensor("critic.head.fc2.weight"), 1, tape.activated)[0] +
               network.tensor("critic.head.fc2.bias")[0];
  return tape;
}

}  // namespace

Network::Network(const ModelConfig& network_config, const std::vector<float>& network_parameters)
    : Network(network_config, Vector(network_parameters.begin(), network_parameters.end())) {}

Network::Network(const ModelConfig& network_config, Vector network_parameters)
    : config(network_config), layout(network_config), parameters(std::move(network_parameters)) {
  if (parameters.size() != layout.size) throw std::invalid_argument("parameters do not fit the layout");
}

namespace {
const Tensor& find_tensor(const ParameterLayout& layout, const std::string& name) {
  for (const Tensor& tensor : layout.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::out_of_range("no tensor " + name);
}
}  // namespace

size_t Network::offset(const std::string& name) const { return find_tensor(layout, name).offset; }
size_t Network::tensor_size(const std::string& name) const { return find_tensor(layout, name).size; }

LstmStep lstm_step(const double* weight_ih, const double* weight_hh, const double* bias, const Vector& input,
                   const Vector& hidden, const Vector& cell) {
  const int size = static_cast<int>(hidden.size());
  const Vector from_input = multiply(weight_ih, 4 * size, input);
  const Vector from_hidden = multiply(weight_hh, 4 * size, hidden);
  LstmStep step{input,        hidden,       cell,         Vector(size), Vector(size),
                Vector(size), Vector(size), Vector(size), Vector(size)};
  const auto gate = [&](int row) { return from_input[row] + from_hidden[row] + bias[row]; };
  for (int k = 0; k < size; ++k) {
    step.i[k] = sigmoid(gate(k));
    step.f[k] = sigmoid(gate(size + k));
    step.g[k] = std::tanh(gate(2 * size + k));
    step.o[k] = sigmoid(gate(3 * size + k));
    step.cell[k] = step.f[k] * cell[k] + step.i[k] * step.g[k];
    step.hidden[k] = step.o[k] * std::tanh(step.cell[k]);
  }
  return step;
}

Vector softmax(const Vector& scores, const std::vector<int>& candidates) {
  double highest = -std::numeric_limits<double>::infinity();
  for (int i : candidates) highest = std::max(highest, scores[i]);
  Vector p(scores.size(), 0.0);
  double total = 0.0;
  for (int i : candidates) total += p[i] = std::exp(scores[i] - highest);
  for (int i : candidates) p[i] /= total;
  return p;
}

Encoding encode(const Network& network, const std::string& network_name, const Sequence& sequence) {
  if (network_name == "actor" && network.config.encoder == Encoder::kAttention)
    return encode_by_attention(network, sequence);
  const LstmTensors lstm = lstm_tensors(network, network_name + ".encoder");
  Encoding encoding;
  Vector hidden(kH, 0.0), cell(kH, 0.0);
  for (int i = 0; i < sequence.n(); ++i) {
    const Vector input =
        multiply(network.tensor(network_name + ".embedding.weight"), kH, features_of(sequence, i));
    encoding.steps.push_back(lstm_step(lstm.weight_ih, lstm.weight_hh, lstm.bias, input, hidden, cell));
    hidden = encoding.steps.back().hidden;
    cell = encoding.steps.back().cell;
    encoding.references.push_back(hidden);
  }
  encoding.start_hidden = hidden;
  encoding.start_cell = cell;
  return encoding;
}

std::vector<int> candidates_after(const Sequence& sequence, const std::vector<int>& order,
                                  const Options& options) {
  if (sequence.problem == ProblemKind::kColouring) return colouring_candidates(sequence, order);
  std::vector<int> candidates;
  if (sequence.problem == ProblemKind::kTsptw) {
    if (order.empty()) return {0};
    std::vector<int> left;
    for (int item : all_items(sequence.n())) {
      if (std::find(order.begin(), order.end(), item) == order.end()) left.push_back(item);
    }
    for (int item : left) {
      if (!options.masks || time_left(sequence, order, item) >= 0.0) candidates.push_back(item);
    }
    return candidates.empty() ? left : candidates;
  }
  for (int item = 0; item < sequence.n(); ++item) {
    if (sequence.problem == ProblemKind::kCvrp && item == 0) {
      const auto customers = static_cast<int>(order.size() - std::count(order.begin(), order.end(), 0));
      if (!order.empty() && order.back() != 0 && customers + 1 < sequence.n()) candidates.push_back(0);
      continue;
    }
    if (std::find(order.begin(), order.end(), item) != order.end()) continue;
    const bool is_literal = options.stop_at_first_misfit && sequence.problem == ProblemKind::kKnapsack;
    if (is_literal || fits(sequence, order, item)) candidates.push_back(item);
  }
  return candidates;
}

Rollout forced(const Network& network, const Sequence& sequence, std::span<const int> order,
               const Options& options) {
  return finish(decode_forced(network, sequence, order, options));
}

Rollout greedy(const Network& network, const Sequence& sequence, const Options& options) {
  Decoder decoder{network, sequence, options};
  while (true) {
    std::vector<int> candidates = candidates_after(sequence, decoder.order, options);
    if (candidates.empty()) break;
    const Step& step = decoder.advance(std::move(candidates)).step;
    int best = step.candidates.front();
    for (int i : step.candidates) {
      if (step.logits[i] > step.logits[best]) best = i;
    }
    if (!fits(sequence, decoder.order, best)) break;  // only the literal rule offers misfits
    decoder.order.push_back(best);
  }
  return finish(std::move(decoder));
}

double cost(const Sequence& sequence, const std::vector<int>& order) {
  if (sequence.problem == ProblemKind::kColouring) {
    const std::vector<int> firsts = first_of_colours(sequence, order);
    return static_cast<double>(std::set<int>(firsts.begin(), firsts.end()).size());
  }
  double total = 0.0;
  if (sequence.problem == ProblemKind::kCvrp) {
    int last = 0;
    for (int item : order) total += distance(sequence, std::exchange(last, item), item);
    return total + distance(sequence, last, 0);
  }
  if (sequence.problem == ProblemKind::kTsptw) {
    double late = 0.0;
    for (size_t t = 0; t < order.size(); ++t) {
      const int next = t + 1 < order.size() ? order[t + 1] : 0;
      const std::vector<int> before(order.begin(), order.begin() + static_cast<int64_t>(t) + 1);
      total += way(sequence, order[t], next);
      late += std::max(arrival_after(sequence, before, next) - closes(sequence, next), 0.0);
    }
    return (total + (late > 0.0 ? kLatePenalty * (late + sequence.capacity) : 0.0)) / sequence.capacity;
  }
  if (sequence.problem == ProblemKind::kStretch) {
    for (size_t t = 2; t < order.size(); ++t) {
      const double* here = &sequence.features[8 * order[t - 1]];
      const double* next = &sequence.features[8 * order[t]];
      total += std::hypot(here[0] - next[0], here[1] - next[1]);
    }
    return total;
  }
  if (sequence.problem == ProblemKind::kAtsp) {
    for (size_t t = 0; t < order.size(); ++t) total += way(sequence, order[t], order[(t + 1) % order.size()]);
    return total;
  }
  const size_t open = sequence.problem == ProblemKind::kPath ? 1 : 0;  // no way back
  for (size_t t = 0; t + open < order.size(); ++t) {
    const double* here = &sequence.features[2 * order[t]];
    const double* next = &sequence.features[2 * order[(t + 1) % order.size()]];
    total += sequence.problem == ProblemKind::kKnapsack ? -here[1]
                                                        : std::hypot(here[0] - next[0], here[1] - next[1]);
  }
  return total;
}

double critic_value(const Network& network, const Sequence& sequence) {
  return run_critic(network, sequence).value;
}

void add_log_prob_gradient(const Network& network, const Sequence& sequence, std::span<const int> order,
                           double weight, const Options& options, Vector& gradient) {
  const Decoder decoder = decode_forced(network, sequence, order, options);
  std::vector<Vector> d_references(sequence.n(), Vector(kH, 0.0));
  Vector d_hidden(kH, 0.0), d_cell(kH, 0.0);
  for (size_t t = decoder.steps.size(); t-- > 0;) {
    const DecoderStep& step = decoder.steps[t];
    add(d_hidden,
        decoder_attention_backward(decoder, step, decoder.order[t], weight, d_references, gradient));
    const std::vector<int> before(decoder.order.begin(), decoder.order.begin() + static_cast<int64_t>(t));
    if (network.layout.priors > 0) {
      const std::vector<Vector> features = prior_features(sequence, before, step.step.candidates);
      for (size_t j = 0; j < features.size(); ++j) {
        const int i = step.step.candidates[j];
        const double d_logit = weight * ((i == decoder.order[t] ? 1.0 : 0.0) - step.step.probabilities[i]);
        for (int k = 0; k < network.layout.priors; ++k)
          gradient[network.layout.prior + k] += d_logit * features[j][k] / options.temperature;
      }
    }
    LstmGradient back = lstm_step_backward(network, "actor.decoder", step.lstm, d_hidden, d_cell, gradient);
    if (const Vector context = context_of(sequence, before); !context.empty()) {
      Vector unused(context.size(), 0.0);
      multiply_backward(network.tensor("actor.decoder.context.weight"), context, back.d_input,
                        gradient.data() + network.offset("actor.decoder.context.weight"), unused);
    }
    if (t == 0) {
      double* d_start = gradient.data() + network.offset("actor.decoder.start");
      for (int k = 0; k < kH; ++k) d_start[k] += back.d_input[k];
    } else {
      Vector unused(sequence.width(), 0.0);
      multiply_backward(network.tensor("actor.embedding.weight"), features_of(sequence, decoder.order[t - 1]),
                        back.d_input, gradient.data() + network.offset("actor.embedding.weight"), unused);
    }
    d_hidden = std::move(back.d_hidden_before);
    d_cell = std::move(back.d_cell_before);
  }
  encode_backward(network, "actor", sequence, decoder.encoding, d_references, std::move(d_hidden),
                  std::move(d_cell), gradient);
}

void add_critic_gradient(const Network& network, const Sequence& sequence, double target, double weight,
                         Vector& gradient) {
  const CriticTape tape = run_critic(network, sequence);
  const double d_value = 2.0 * weight * (tape.value - target);
  gradient[network.offset("critic.head.fc2.bias")] += d_value;
  Vector d_hidden(kH, 0.0);
  multiply_backward(network.tensor("critic.head.fc2.weight"), tape.activated, {d_value},
                    gradient.data() + network.offset("critic.head.fc2.weight"), d_hidden);
  double* d_bias = gradient.data() + network.offset("critic.head.fc1.bias");
  for (int k = 0; k < kH; ++k) {
    if (tape.before_relu[k] <= 0.0) d_hidden[k] = 0.0;
    d_bias[k] += d_hidden[k];
  }
  Vector d_query(kH, 0.0);
  multiply_backward(network.tensor("critic.head.fc1.weight"), tape.glimpses.back().g, d_hidden,
                    gradient.data() + network.offset("critic.head.fc1.weight"), d_query);

  std::vector<Vector> d_references(sequence.n(), Vector(kH, 0.0));
  const std::vector<int> items = all_items(sequence.n());
  const Attention process(network, "critic.process", tape.encoding.references);
  for (size_t k = tape.glimpses.size(); k-- > 0;) {
    d_query = glimpse_backward(process, tape.encoding.references, tape.glimpses[k], items, d_query,
                               d_references, gradient);
  }
  // The first query is the encoder's last hidden state.
  encode_backward(network, "critic", sequence, tape.encoding, d_references, std::move(d_query),
                  Vector(kH, 0.0), gradient);
}

}  // namespace pointsman::reference
