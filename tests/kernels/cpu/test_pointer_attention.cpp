// SPDX-License-Identifier: Apache-2.0
// Glimpse and pointer, forward and backward, against plain double loops over tanh(a + q): nothing factored,
// nothing joined.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/common/scalar_math.h"
#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

constexpr int kSizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 100, 127};
using Vector = std::vector<double>;

// Which of the three ways a score takes, and how large references and queries are for it.
struct RangeCase {
  const char* name;
  float references, query;
  bool direct;
  // Bound of a score's error in units of 2^-24 sum |v|. Factored: both exponentials (1.5 each, 3 without
  // fma), the denominator, four joined products and quotients, on 2/x <= 2 and x' A B / x^2 <= 1/4; then 11
  // sums over H of at most sum |v| each and v_sum's own. Direct: also log and exp of an argument up to 40,
  // where tanh still bends only 2 |a + q| <= 18 matters for the sum's rounding, 40 for the logarithm's.
  double units;
};

constexpr RangeCase kRanges[] = {{"uncapped", 4.0f, 4.0f, false, 50.0},
                                 {"capped", 19.5f, 19.5f, false, 50.0},
                                 {"raw references", 35.0f, 35.0f, true, 150.0},
                                 {"references in factors, large query", 15.0f, 35.0f, true, 150.0}};

// One step's inputs. a*: W_ref r in the clear; what the kernel reads is made of it by exp_references.
struct Step {
  int n;
  std::vector<float> glimpse_a, pointer_a, values, requeries, glimpse_v, pointer_v, query;
  std::vector<float> glimpse_read, pointer_read;
  std::vector<int32_t> items;
  cpu::References references{};
  cpu::AttentionWeights weights{};

  Step(int n_, int glimpses, bool centre, const RangeCase& range, float v_scale = 0.1f) : n(n_) {
    const size_t size = static_cast<size_t>(n) * kHidden;
    glimpse_a = random_floats(size, 1, range.references);
    pointer_a = random_floats(size, 2, range.references);
    // A glimpse's readout is the next query: it has to lie in the same range.
    values = random_floats(size, 3, range.query);
    requeries = random_floats(size, 4, range.query);
    glimpse_v = random_floats(kHidden, 5, v_scale);
    pointer_v = random_floats(kHidden, 6, v_scale);
    query = random_floats(kHidden, 7, range.query);
    // Two of three rows remain, in an order of their own.
    for (int i = 0; i < n; ++i) {
      if (i % 3 != 1 || n == 1) items.push_back(i);
    }
    for (size_t i = items.size(); i-- > 1;) std::swap(items[i], items[(i * 7919 + 13) % (i + 1)]);
    weights = {glimpse_v.data(), pointer_v.data(), glimpses, centre, 10.0f};
    prepare();
  }

  void prepare() {
    glimpse_read = glimpse_a;
    pointer_read = pointer_a;
    const int size = n * kHidden;
    references.glimpse_bound = cpu::exp_references(glimpse_read.data(), size);
    references.pointer_bound = cpu::exp_references(pointer_read.data(), size);
    references.glimpse = glimpse_read.data();
    references.pointer = pointer_read.data();
    references.values = values.data();
    references.requeries = requeries.data();
  }

  int count() const { return static_cast<int>(items.size()); }

  std::vector<float> logits(cpu::StepStatistics* statistics = nullptr) const {
    std::vector<float> out(cpu::padded(count()));
    cpu::StepStatistics unused;
    std::vector<float> activations(activation_count());
    cpu::pointer_logits({&references, &weights, query.data(), items.data(), count(), nullptr, out.data(),
                         activations.data(), statistics == nullptr ? &unused : statistics});
    out.resize(items.size());
    return out;
  }

  int activation_count() const { return cpu::attention_activations(count(), weights.glimpses); }

  // Forward and backward. NaN shows what is read before it is written; each buffer's last float shows what is
  // written beyond its end.
  void gradient(int chosen, float weight, cpu::ReferenceGradients& sums, float* dquery) const {
    std::vector<float> logits(cpu::padded(count())), activations(activation_count() + 1, NAN);
    std::vector<float> scratch(cpu::gradient_scratch(count()) + 1, NAN);
    activations.back() = scratch.back() = 77.0f;
    cpu::StepStatistics unused;
    cpu::pointer_logits({&references, &weights, query.data(), items.data(), count(), nullptr, logits.data(),
                         activations.data(), &unused});
    const std::vector<float> kept = activations;
    cpu::pointer_gradient({&references, &weights, query.data(), items.data(), count(), nullptr,
                           activations.data(), chosen, weight, &sums, dquery, nullptr, scratch.data()});
    CHECK(scratch.back() == 77.0f);
    CHECK(activations.back() == 77.0f);
    CHECK(same_bits(activations, kept));
  }
};

// ------------------------------------------------------------------------------------------- plain double
// loops

double absolute_sum(const std::vector<float>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0,
                         [](double sum, float x) { return sum + std::abs(double{x}); });
}

double largest(const std::vector<float>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [](double m, float y) { return std::max(m, std::abs(double{y})); });
}

Vector to_double(const std::vector<float>& x) { return Vector(x.begin(), x.end()); }

Vector plain_scores(const Vector& a, const Vector& v, const Vector& query,
                    const std::vector<int32_t>& items) {
  Vector u;
  for (int item : items) {
    double sum = 0.0;
    for (int d = 0; d < kHidden; ++d) sum += v[d] * std::tanh(a[item * kHidden + d] + query[d]);
    u.push_back(sum);
  }
  return u;
}

Vector plain_softmax(const Vector& u) {
  const double most = *std::max_element(u.begin(), u.end());
  Vector p;
  for (double x : u) p.push_back(std::exp(x - most));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

Vector plain_readout(const Vector& p, const Vector& values, const std::vector<int32_t>& items) {
  Vector out(kHidden, 0.0);
  for (size_t j = 0; j < items.size(); ++j) {
    for (int d = 0; d < kHidden; ++d) out[d] += p[j] * values[items[j] * kHidden + d];
  }
  return out;
}

// The step in double, as a function of everything that has a gradient.
struct PlainStep {
  Vector glimpse_a, pointer_a, values, requeries, glimpse_v, pointer_v, query;
  std::vector<int32_t> items;
  int glimpses;
  bool centre;
  double scale;

  explicit PlainStep(const Step& s)
      : glimpse_a(to_double(s.glimpse_a)),
        pointer_a(to_double(s.pointer_a)),
        values(to_double(s.values)),
        requeries(to_double(s.requeries)),
        glimpse_v(to_double(s.glimpse_v)),
        pointer_v(to_double(s.pointer_v)),
        query(to_double(s.query)),
        items(s.items),
        glimpses(s.weights.glimpses),
        centre(s.weights.centre),
        scale(s.weights.scale) {}

  Vector centred() const {
    Vector q = query;
    for (int g = 0; g < glimpses; ++g) {
      const Vector p = plain_softmax(plain_scores(glimpse_a, glimpse_v, q, items));
      q = plain_readout(p, g + 1 < glimpses ? requeries : values, items);
    }
    return plain_scores(pointer_a, pointer_v, q, items);
  }

  Vector logits(double* mean_u = nullptr) const {
    Vector u = centred();
    const double mean = std::accumulate(u.begin(), u.end(), 0.0) / static_cast<double>(u.size());
    if (mean_u != nullptr) *mean_u = mean;
    for (double& x : u) x = scale * std::tanh(x - (centre ? mean : 0.0));
    return u;
  }

  double log_probability(int chosen) const { return std::log(plain_softmax(logits())[chosen]); }
};

// Bound of |u - exact| of the pointer's scores: its own rounding, plus sum |v| (tanh' <= 1) times the query's
// error, which is that of the glimpse's softmax (2 x its scores' error, exp, sums over the items) on the
// largest value.
double score_bound(const Step& s, double units) {
  const double count = s.count();
  double query_off = 0.0;
  for (int g = 0; g < s.weights.glimpses; ++g) {
    const double off = absolute_sum(s.glimpse_v) * (units * kUnit + query_off);
    const double most = largest(g + 1 < s.weights.glimpses ? s.requeries : s.values);
    query_off = most * (2.0 * off + (2.0 * count + 8.0) * kUnit);
  }
  return absolute_sum(s.pointer_v) * (units * kUnit + query_off);
}

// Scores, their mean (count sums of values up to max |u|), the clip's tanh and the scale.
double logit_bound(const Step& s, double units, double largest_u) {
  return s.weights.scale * (2.0 * score_bound(s, units) + s.count() * kUnit * largest_u + 6.0 * kUnit);
}

double largest_difference(const std::vector<float>& found, const Vector& exact) {
  double worst = 0.0;
  for (size_t j = 0; j < exact.size(); ++j) {
    const double off = std::abs(found[j] - exact[j]);
    worst = worse(worst, off);
  }
  return worst;
}

double largest(const Vector& x) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [](double m, double y) { return std::max(m, std::abs(y)); });
}

// ------------------------------------------------------------------------------------------- forward

TEST_CASE("exp_references: exp(2a) and the largest |a|, untouched beyond the limit") {
  on_each_target([](const CpuTarget&) {
    for (int count : {16, 32, 128, 1280}) {
      const std::vector<float> a = random_floats(count, 1, 19.9f);
      std::vector<float> values = a;
      CHECK(cpu::exp_references(values.data(), count) == static_cast<float>(largest(a)));
      double worst = 0.0;
      for (int i = 0; i < count; ++i) worst = worse(worst, std::abs(values[i] / std::exp(2.0 * a[i]) - 1.0));
      // Two units, and without fma what the argument's reduction rounds away: 60 units of it, times 2^-24.
      CHECK(worst <= 4.0 * kUnit);
      for (float outlier : {20.5f, -20.5f}) {
        std::vector<float> large = a;
        large[count - 1] = outlier;
        values = large;
        CHECK(cpu::exp_references(values.data(), count) == 20.5f);
        CHECK(same_bits(values, large));
      }
    }
  });
}

TEST_CASE("exp_references: the limit itself is still factored") {
  on_each_target([](const CpuTarget&) {
    std::vector<float> values(16, kFactoredLimit);
    CHECK(cpu::exp_references(values.data(), 16) == kFactoredLimit);
    CHECK(values[0] == Approx(std::exp(40.0)).epsilon(1e-6));
  });
}

void check_logits(const Step& s, const RangeCase& range) {
  cpu::StepStatistics statistics;
  const std::vector<float> found = s.logits(&statistics);
  const PlainStep plain(s);
  double mean_u;
  const Vector exact = plain.logits(&mean_u);
  const double most = largest(plain.centred()), bound = logit_bound(s, range.units, most);
  CHECK(largest_difference(found, exact) <= bound);
  CHECK(std::abs(statistics.mean_u - mean_u) <= bound / s.weights.scale);
  CHECK(statistics.direct == range.direct);
  int surely = 0, maybe = 0;
  for (double logit : exact) {
    surely += std::abs(logit) / s.weights.scale > 0.99 + bound;
    maybe += std::abs(logit) / s.weights.scale > 0.99 - bound;
  }
  const int saturated = static_cast<int>(std::lround(statistics.saturated * s.count()));
  CHECK((surely <= saturated && saturated <= maybe));
}

TEST_CASE("pointer_logits: every size, glimpses, centring and range") {
  on_each_target([](const CpuTarget&) {
    for (const RangeCase& range : kRanges) {
      for (int n : kSizes) {
        for (int glimpses : {0, 1, 2}) {
          for (bool centre : {true, false}) {
            INFO(range.name << ", n = " << n << ", " << glimpses << " glimpses"
                            << (centre ? ", centred" : ""));
            check_logits(Step(n, glimpses, centre, range, 0.05f), range);
          }
        }
      }
    }
  });
}

TEST_CASE("pointer_logits saturate as the clip says") {
  on_each_target([](const CpuTarget&) {
    for (bool centre : {true, false}) {
      Step s(33, 0, centre, kRanges[0], 0.5f);
      // Each item is the first one once: the padding repeats the first.
      for (int i = 0; i < s.count(); ++i) {
        check_logits(s, kRanges[0]);
        std::rotate(s.items.begin(), s.items.begin() + 1, s.items.end());
      }
    }
  });
}

// How far scores are from double: 0 glimpses, not centred, a scale that keeps the clip's tanh linear.
double score_error(const Step& s) {
  return largest_difference(s.logits(), PlainStep(s).logits()) / s.weights.scale;
}

TEST_CASE("scores where a and q cancel") {
  on_each_target([](const CpuTarget&) {
    for (float size : {4.9f, 10.0f, 19.9f, 30.0f}) {
      Step s(17, 0, false, kRanges[0], 0.01f);
      for (float& a : s.pointer_a) a = size;
      for (float& q : s.query) q = -size;
      s.pointer_a[5] = -size;  // so that one element of the row has |a + q| = 2 size
      s.prepare();
      INFO("a = " << size << ", q = " << -size);
      CHECK(score_error(s) <=
            absolute_sum(s.pointer_v) * kRanges[size > 20 ? 2 : 1].units * kUnit + 4 * kUnit);
    }
  });
}

TEST_CASE("scores with v = 0 and v = 1e-8") {
  on_each_target([](const CpuTarget&) {
    for (const RangeCase& range : kRanges) {
      Step s(17, 0, false, range);
      std::fill(s.pointer_v.begin(), s.pointer_v.end(), 0.0f);
      for (float logit : s.logits()) CHECK(logit == 0.0f);
      std::fill(s.pointer_v.begin(), s.pointer_v.end(), 1e-8f);
      CHECK(score_error(s) <= 128 * 1e-8 * range.units * kUnit);
      for (int d = 0; d < kHidden; d += 2) s.pointer_v[d] = d % 4 == 0 ? 0.5f : 0.0f;
      CHECK(score_error(s) <= absolute_sum(s.pointer_v) * (range.units + 6) * kUnit);
    }
  });
}

TEST_CASE("every row alike gives every item the same logit") {
  on_each_target([](const CpuTarget&) {
    for (int glimpses : {0, 1, 2}) {
      Step s(33, glimpses, true, kRanges[0]);
      for (auto* rows : {&s.glimpse_a, &s.pointer_a, &s.values, &s.requeries}) {
        for (size_t i = kHidden; i < rows->size(); ++i) (*rows)[i] = (*rows)[i - kHidden];
      }
      s.prepare();
      const std::vector<float> logits = s.logits();
      for (float logit : logits) CHECK(same_bits(logit, logits[0]));
    }
  });
}

// The kernels' own arithmetic, one number at a time: a score's 16 partial sums of quotients.
std::array<float, 16> quotients_in_written_order(const float* factors, const float* query, const float* v) {
  std::array<float, 16> quotients;
  for (int l = 0; l < 16; ++l) {
    float half[2];
    for (int h = 0; h < 2; ++h) {
      float x[4], w[4];
      for (int t = 0; t < 4; ++t) {
        const int d = 64 * h + 16 * t + l;
        x[t] = std::fma(factors[d], exp_f32(query[d] + query[d]), 1.0f);
        w[t] = v[d];
      }
      const float n01 = std::fma(w[0], x[1], w[1] * x[0]), d01 = x[0] * x[1];
      const float n23 = std::fma(w[2], x[3], w[3] * x[2]), d23 = x[2] * x[3];
      half[h] = std::fma(n01, d23, n23 * d01) / (d01 * d23);
    }
    quotients[l] = half[0] + half[1];
  }
  return quotients;
}

// Relative to the first item's.
std::vector<float> scores_in_written_order(const Step& s, const std::vector<float>& factors,
                                           const std::vector<float>& query, const std::vector<float>& v) {
  const auto quotients = [&](int item) {
    return quotients_in_written_order(factors.data() + item * kHidden, query.data(), v.data());
  };
  const std::array<float, 16> first = quotients(s.items[0]);
  std::vector<float> u;
  for (int item : s.items) {
    std::array<float, 16> relative = quotients(item);
    for (int l = 0; l < 16; ++l) relative[l] -= first[l];
    u.push_back(-2.0f * tree_sum(relative.data()));
  }
  return u;
}

TEST_CASE("pointer_logits: sums over H by the written tree, over items in list order") {
  on_each_target([](const CpuTarget& target) {
    if (!target.has_fma) return;
    for (int n : kSizes) {
      const Step s(n, 1, true, kRanges[0]);
      std::vector<float> e = scores_in_written_order(s, s.glimpse_read, s.query, s.glimpse_v);
      const float most = *std::max_element(e.begin(), e.end());
      std::vector<float> query(kHidden, 0.0f);
      float total = 0.0f;
      for (int j = 0; j < s.count(); ++j) {
        e[j] = exp_f32(e[j] - most);
        total += e[j];
        for (int d = 0; d < kHidden; ++d)
          query[d] = std::fma(e[j], s.values[s.items[j] * kHidden + d], query[d]);
      }
      for (float& q : query) q /= total;
      std::vector<float> expected = scores_in_written_order(s, s.pointer_read, query, s.pointer_v);
      float sum = 0.0f;
      for (float u : expected) sum += u;
      const float mean = sum / static_cast<float>(s.count());
      for (float& u : expected) u = tanh_f32(u - mean) * s.weights.scale;
      INFO("n = " << n);
      CHECK(same_bits(s.logits(), expected));
    }
  });
}

// Where a + q is far below 0 every denominator is exactly 1, so nothing but the sums rounds; the mean of one
// item's u is u.
TEST_CASE("the tree of sums over H is the same on every target, with fma or without") {
  on_each_target([](const CpuTarget&) {
    Step s(1, 0, true, kRanges[0], 0.3f);
    std::fill(s.pointer_a.begin(), s.pointer_a.end(), -10.0f);
    std::fill(s.query.begin(), s.query.end(), -9.0f);
    s.prepare();
    int different = 0;
    for (uint32_t seed = 1; seed <= 50;
         ++seed) {  // one number alone may round to the same bits in another order
      const std::vector<float> weights = random_floats(kHidden, seed, 0.3f);
      std::copy(weights.begin(), weights.end(), s.pointer_v.begin());
      float quotients[16], sums[16];
      for (int l = 0; l < 16; ++l) {
        const auto v = [&](int i) { return weights[16 * i + l]; };
        quotients[l] = ((v(0) + v(1)) + (v(2) + v(3))) + ((v(4) + v(5)) + (v(6) + v(7)));
        sums[l] = v(0);
        for (int i = 1; i < 8; ++i) sums[l] = sums[l] + v(i);
      }
      cpu::StepStatistics statistics;
      s.logits(&statistics);
      different += !same_bits(statistics.mean_u, tree_sum(sums) - 2.0f * tree_sum(quotients));
    }
    CHECK(different == 0);
  });
}

// ------------------------------------------------------------------------------------------- backward

// Gradients of weight * log p(chosen), by a plain reversal of PlainStep.
struct PlainGradient {
  Vector glimpse_a, pointer_a, values, requeries, glimpse_v, pointer_v, query;
};

// u_j = v . tanh(a_j + q): returns dq.
Vector reverse_scores(const Vector& a, const Vector& v, const Vector& query,
                      const std::vector<int32_t>& items, const Vector& du, Vector& da, Vector& dv) {
  Vector dq(kHidden, 0.0);
  for (size_t j = 0; j < items.size(); ++j) {
    for (int d = 0; d < kHidden; ++d) {
      const double t = std::tanh(a[items[j] * kHidden + d] + query[d]), g = du[j] * v[d] * (1.0 - t * t);
      da[items[j] * kHidden + d] += g;
      dv[d] += du[j] * t;
      dq[d] += g;
    }
  }
  return dq;
}

// g = sum softmax(u)_j values_j: returns du.
Vector reverse_readout(const Vector& p, const Vector& values, const std::vector<int32_t>& items,
                       const Vector& dout, Vector& dvalues) {
  Vector dp(items.size(), 0.0);
  double mean = 0.0;
  for (size_t j = 0; j < items.size(); ++j) {
    for (int d = 0; d < kHidden; ++d) {
      dp[j] += dout[d] * values[items[j] * kHidden + d];
      dvalues[items[j] * kHidden + d] += p[j] * dout[d];
    }
    mean += p[j] * dp[j];
  }
  for (size_t j = 0; j < items.size(); ++j) dp[j] = p[j] * (dp[j] - mean);
  return dp;
}

PlainGradient plain_gradient(const PlainStep& s, int chosen, double weight) {
  const Vector zeros(s.values.size(), 0.0), zero_v(kHidden, 0.0);
  PlainGradient gradient{zeros, zeros, zeros, zeros, zero_v, zero_v, {}};
  std::vector<Vector> queries{s.query}, softmaxes;
  for (int g = 0; g < s.glimpses; ++g) {
    softmaxes.push_back(plain_softmax(plain_scores(s.glimpse_a, s.glimpse_v, queries.back(), s.items)));
    queries.push_back(plain_readout(softmaxes.back(), g + 1 < s.glimpses ? s.requeries : s.values, s.items));
  }
  const Vector logits = s.logits(), p = plain_softmax(logits);
  Vector du;
  double mean = 0.0;
  for (size_t j = 0; j < p.size(); ++j) {
    const double t = logits[j] / s.scale;
    du.push_back(weight * ((static_cast<int>(j) == chosen ? 1.0 : 0.0) - p[j]) * s.scale * (1.0 - t * t));
    mean += du.back() / static_cast<double>(p.size());
  }
  if (s.centre) {
    for (double& x : du) x -= mean;
  }
  Vector dq = reverse_scores(s.pointer_a, s.pointer_v, queries.back(), s.items, du, gradient.pointer_a,
                             gradient.pointer_v);
  for (int g = s.glimpses - 1; g >= 0; --g) {
    const bool last = g + 1 == s.glimpses;
    du = reverse_readout(softmaxes[g], last ? s.values : s.requeries, s.items, dq,
                         last ? gradient.values : gradient.requeries);
    dq = reverse_scores(s.glimpse_a, s.glimpse_v, queries[g], s.items, du, gradient.glimpse_a,
                        gradient.glimpse_v);
  }
  gradient.query = dq;
  return gradient;
}

TEST_CASE("the plain gradient agrees with central differences along random directions") {
  for (int glimpses : {0, 1, 2}) {
    for (bool centre : {true, false}) {
      const PlainStep at(Step(7, glimpses, centre, {"", 1.0f, 1.0f, false, 0.0}, 0.3f));
      PlainGradient gradient = plain_gradient(at, 2, 0.7);
      const auto check = [&](Vector PlainStep::*input, const Vector& d) {
        const std::vector<float> direction = random_floats(d.size(), 99);
        PlainStep above = at, below = at;
        double expected = 0.0;
        for (size_t k = 0; k < d.size(); ++k) {
          (above.*input)[k] += 1e-6 * direction[k];
          (below.*input)[k] -= 1e-6 * direction[k];
          expected += d[k] * direction[k];
        }
        const double slope = 0.7 * (above.log_probability(2) - below.log_probability(2)) / 2e-6;
        CHECK(std::abs(slope - expected) <= 1e-6 * (1.0 + std::abs(expected)));
      };
      check(&PlainStep::glimpse_a, gradient.glimpse_a);
      check(&PlainStep::pointer_a, gradient.pointer_a);
      check(&PlainStep::values, gradient.values);
      check(&PlainStep::requeries, gradient.requeries);
      check(&PlainStep::glimpse_v, gradient.glimpse_v);
      check(&PlainStep::pointer_v, gradient.pointer_v);
      check(&PlainStep::query, gradient.query);
    }
  }
}

// Gradient sums that hold something before the call, which must stay.
struct Sums {
  std::vector<float> glimpse, pointer, values, requeries, glimpse_v, pointer_v, dquery;

  explicit Sums(int n)
      : glimpse(random_floats(static_cast<size_t>(n) * kHidden, 11, 1e-3f)),
        pointer(random_floats(static_cast<size_t>(n) * kHidden, 12, 1e-3f)),
        values(random_floats(static_cast<size_t>(n) * kHidden, 13, 1e-3f)),
        requeries(random_floats(static_cast<size_t>(n) * kHidden, 14, 1e-3f)),
        glimpse_v(random_floats(kHidden, 15, 1e-3f)),
        pointer_v(random_floats(kHidden, 16, 1e-3f)),
        dquery(kHidden, 99.0f) {}

  cpu::ReferenceGradients arguments() {
    return {glimpse.data(),   pointer.data(),   values.data(),
            requeries.data(), glimpse_v.data(), pointer_v.data()};
  }
};

// Largest difference of found - before (times v where given) and exact, over `scale`.
double relative_to(double scale, const std::vector<float>& found, const std::vector<float>& before,
                   const Vector& exact, const std::vector<float>* v) {
  double worst = 0.0;
  for (size_t k = 0; k < exact.size(); ++k) {
    const double sum =
        static_cast<double>(found[k]) - (before.empty() ? 0.0 : static_cast<double>(before[k]));
    const double off =
        std::abs((v == nullptr ? 1.0 : static_cast<double>((*v)[k % kHidden])) * sum - exact[k]);
    worst = worse(worst, off);
  }
  return worst / scale;
}

// A gradient is du (off by what the logits are off, relative to weight * scale), times tanh' or tanh (their x
// is good to the range's units), summed over the items and, for a glimpse, over H: what is compared is scaled
// by the largest sum of magnitudes that enters it.
void check_gradient(const Step& s, const RangeCase& range) {
  const int chosen = s.count() / 2;
  const float weight = -0.7f;
  const Sums before(s.n);
  Sums after = before;
  cpu::ReferenceGradients sums = after.arguments();
  s.gradient(chosen, weight, sums, after.dquery.data());
  const PlainStep plain(s);
  const PlainGradient exact = plain_gradient(plain, chosen, weight);
  const double logit_off = logit_bound(s, range.units, largest(plain.centred()));
  const double relative = 3.0 * logit_off + (range.units + s.count()) * kUnit;
  const double du = std::abs(weight) * s.weights.scale * 2.0;  // of one item; over all of them twice that
  const double query_scale = 2.0 * du * largest(s.pointer_v);
  // Back through a glimpse: dp <= sum over H of |dout| |value|, p sums to 1.
  const double glimpse_du = 2.0 * query_scale * kHidden * std::max(largest(s.values), largest(s.requeries));
  const double resting = 1e-3 * 2 * kUnit;  // rounding of the sums that were there before
  const auto close = [&](double scale, const std::vector<float>& found, const std::vector<float>& was,
                         const Vector& d, const std::vector<float>* v) {
    return relative_to(scale * relative + resting, found, was, d, v);
  };
  CHECK(close(du * largest(s.pointer_v), after.pointer, before.pointer, exact.pointer_a, &s.pointer_v) <=
        1.0);
  CHECK(close(2.0 * du, after.pointer_v, before.pointer_v, exact.pointer_v, nullptr) <= 1.0);
  if (s.weights.glimpses == 0) {
    CHECK(close(query_scale, after.dquery, {}, exact.query, nullptr) <= 1.0);
    CHECK(same_bits(after.glimpse, before.glimpse));
    CHECK(same_bits(after.values, before.values));
    CHECK(same_bits(after.glimpse_v, before.glimpse_v));
    return;
  }
  const double depth =
      s.weights.glimpses == 1 ? 1.0 : 1.0 + 2.0 * largest(s.glimpse_v) * kHidden * largest(s.requeries);
  CHECK(close(query_scale, after.values, before.values, exact.values, nullptr) <= 1.0);
  CHECK(close(depth * glimpse_du * largest(s.glimpse_v), after.glimpse, before.glimpse, exact.glimpse_a,
              &s.glimpse_v) <= 1.0);
  CHECK(close(depth * glimpse_du, after.glimpse_v, before.glimpse_v, exact.glimpse_v, nullptr) <= 1.0);
  CHECK(close(depth * glimpse_du * largest(s.glimpse_v), after.dquery, {}, exact.query, nullptr) <= 1.0);
  if (s.weights.glimpses == 1) {
    CHECK(same_bits(after.requeries, before.requeries));
  } else {
    CHECK(close(glimpse_du * largest(s.glimpse_v), after.requeries, before.requeries, exact.requeries,
                nullptr) <= 1.0);
  }
}

TEST_CASE("pointer_gradient: every size, glimpses, centring and range") {
  on_each_target([](const CpuTarget&) {
    for (const RangeCase& range : kRanges) {
      for (int n : kSizes) {
        for (int glimpses : {0, 1, 2}) {
          for (bool centre : {true, false}) {
            INFO(range.name << ", n = " << n << ", " << glimpses << " glimpses"
                            << (centre ? ", centred" : ""));
            check_gradient(Step(n, glimpses, centre, range, 0.02f), range);
          }
        }
      }
    }
  });
}

// At the size of a trained network's numbers the gradients are close in the plain sense: within 1e-4 of their
// tensor's largest magnitude, the engine's bar.
TEST_CASE("pointer_gradient is within 1e-4 of its largest element where numbers are ordinary") {
  on_each_target([](const CpuTarget&) {
    for (int glimpses : {0, 1, 2}) {
      for (bool centre : {true, false}) {
        const Step s(33, glimpses, centre, {"", 1.0f, 1.0f, false, 0.0}, 0.3f);
        const int chosen = 5;
        Sums before(s.n);
        for (auto* sum : {&before.glimpse, &before.pointer, &before.values, &before.requeries,
                          &before.glimpse_v, &before.pointer_v}) {
          std::fill(sum->begin(), sum->end(), 0.0f);
        }
        Sums after = before;
        cpu::ReferenceGradients sums = after.arguments();
        s.gradient(chosen, 1.0f, sums, after.dquery.data());
        const PlainGradient exact = plain_gradient(PlainStep(s), chosen, 1.0);
        const auto close = [](const std::vector<float>& found, const std::vector<float>& was, const Vector& d,
                              const std::vector<float>* v) {
          return largest(d) == 0.0 ? 0.0 : relative_to(largest(d), found, was, d, v);
        };
        CHECK(close(after.pointer, before.pointer, exact.pointer_a, &s.pointer_v) <= 1e-4);
        CHECK(close(after.pointer_v, before.pointer_v, exact.pointer_v, nullptr) <= 1e-4);
        CHECK(close(after.dquery, {}, exact.query, nullptr) <= 1e-4);
        CHECK(close(after.glimpse, before.glimpse, exact.glimpse_a, &s.glimpse_v) <= 1e-4);
        CHECK(close(after.glimpse_v, before.glimpse_v, exact.glimpse_v, nullptr) <= 1e-4);
        CHECK(close(after.values, before.values, exact.values, nullptr) <= 1e-4);
        CHECK(close(after.requeries, before.requeries, exact.requeries, nullptr) <= 1e-4);
      }
    }
  });
}

// ------------------------------------------------------------------------------------------- the critic's
// glimpse

struct GlimpseCase {
  Step step;
  std::vector<float> out = std::vector<float>(kHidden), scratch;

  GlimpseCase(int n, const RangeCase& range)
      : step(n, 1, false, range, 0.02f), scratch(cpu::padded(step.count())) {}

  cpu::GlimpseArgs arguments() {
    return {step.references.glimpse,
            step.references.glimpse_bound,
            step.values.data(),
            step.glimpse_v.data(),
            step.query.data(),
            step.items.data(),
            step.count(),
            out.data(),
            scratch.data()};
  }
};

TEST_CASE("glimpse and glimpse_gradient against double") {
  on_each_target([](const CpuTarget&) {
    for (const RangeCase& range : kRanges) {
      for (int n : kSizes) {
        INFO(range.name << ", n = " << n);
        GlimpseCase c(n, range);
        const Step& s = c.step;
        const PlainStep plain(s);
        cpu::glimpse(c.arguments());
        const Vector p = plain_softmax(plain_scores(plain.glimpse_a, plain.glimpse_v, plain.query, s.items));
        const double off =
            2.0 * absolute_sum(s.glimpse_v) * range.units * kUnit + (2.0 * s.count() + 8.0) * kUnit;
        CHECK(largest_difference(c.out, plain_readout(p, plain.values, s.items)) <= off * largest(s.values));

        const std::vector<float> dout = random_floats(kHidden, 21), readout = c.out;
        const Sums before(n);
        Sums after = before;
        std::vector<float> scratch(cpu::gradient_scratch(s.count()), NAN);
        cpu::glimpse_gradient({c.arguments(), dout.data(), after.glimpse.data(), after.values.data(),
                               after.glimpse_v.data(), after.dquery.data(), scratch.data()});
        CHECK(same_bits(c.out, readout));  // the forward made again
        Vector da(plain.glimpse_a.size(), 0.0), dvalues = da, dv(kHidden, 0.0);
        const Vector du = reverse_readout(p, plain.values, s.items, to_double(dout), dvalues);
        const Vector dq = reverse_scores(plain.glimpse_a, plain.glimpse_v, plain.query, s.items, du, da, dv);
        const double relative = 2.0 * off + (range.units + s.count()) * kUnit, resting = 1e-3 * 2 * kUnit;
        const double du_scale = 2.0 * absolute_sum(dout) * largest(s.values), v = largest(s.glimpse_v);
        CHECK(relative_to(relative + resting, after.values, before.values, dvalues, nullptr) <= 1.0);
        CHECK(relative_to(relative * du_scale * v + resting, after.glimpse, before.glimpse, da,
                          &s.glimpse_v) <= 1.0);
        CHECK(relative_to(relative * du_scale + resting, after.glimpse_v, before.glimpse_v, dv, nullptr) <=
              1.0);
        CHECK(relative_to(relative * du_scale * v, after.dquery, {}, dq, nullptr) <= 1.0);
      }
    }
  });
}

// All scores are alike and only the first item has another value. Then du of every other item is p / n: what
// is left of p when the mean is taken off. It has two roundings, of p and of du, if the mean is one over the
// p as rounded. Their sum is off 1 by up to kUnit; not divided by it, the mean would put n - 1 times that on
// du.
TEST_CASE("glimpse_gradient: its mean is one over the weights as rounded") {
  on_each_target([](const CpuTarget&) {
    for (int n : kSizes) {
      GlimpseCase c(n, kRanges[0]);
      Step& s = c.step;
      for (auto* zeroed : {&s.glimpse_a, &s.query, &s.values})
        std::fill(zeroed->begin(), zeroed->end(), 0.0f);
      for (int j = 1; j < s.count(); ++j) s.values[s.items[j] * kHidden] = 1.0f;
      s.prepare();
      std::vector<float> dout(kHidden, 0.0f);
      dout[0] = 1.0f;
      Sums sums(n);
      std::fill(sums.glimpse.begin(), sums.glimpse.end(), 0.0f);
      std::vector<float> scratch(cpu::gradient_scratch(s.count()));
      cpu::glimpse_gradient({c.arguments(), dout.data(), sums.glimpse.data(), sums.values.data(),
                             sums.glimpse_v.data(), sums.dquery.data(), scratch.data()});
      const double count = s.count(), left = 1.0 / (count * count);
      double worst = 0.0;
      for (int j = 1; j < s.count(); ++j) {
        const double du = sums.glimpse[s.items[j] * kHidden];  // tanh' of 0 is 1
        worst = worse(worst, std::abs(du / left - 1.0));
      }
      INFO("n = " << n);
      CHECK(worst <= 2.01 * kUnit);  // the sums in double add count^2 2^-53 at most
    }
  });
}

}  // namespace
}  // namespace pointsman
