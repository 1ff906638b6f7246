// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/timed_search.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/search/heuristics.h"

namespace pointsman {
namespace {

constexpr int kLongestMoved = 3;     // places of a stretch that changes its place with another
constexpr int kSpan = 60;            // how far apart the ends of a change may be in the order
constexpr int kKickSpan = 10;        // of a kick, and of the changes around it
constexpr double kRounding = 1e-12;  // of a length: what is no gain
constexpr int64_t kLooksPerCheck = 1 << 14;

// A tour, and what each change of it costs.
class TimedOrder {
 public:
  TimedOrder(const Instance& instance, std::vector<int32_t> order)
      : places_(instance), n_(instance.n()), order_(std::move(order)), marks_(static_cast<size_t>(n_) + 1) {
    ways_.reserve(static_cast<size_t>(n_) * n_);
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < n_; ++b) ways_.push_back(places_.way(a, b));
    }
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < a; ++b) is_symmetric_ = is_symmetric_ && way(a, b) == way(b, a);
    }
    measure(1);
  }

  int n() const { return n_; }
  const std::vector<int32_t>& order() const { return order_; }
  double late() const { return marks_[n_].late; }
  double length() const { return marks_[n_].length; }
  int64_t looks() const { return looks_; }  // at changes, that were made

  // Makes changes that gain, of at most `span` places, whose first is one of first .. last, until there is
  // none.
  template <typename IsOver>
  bool descend(int first, int last, int span, const IsOver& is_over) {
    first = std::max(first, 1);
    for (bool gains = true; gains;) {
      gains = false;
      for (int i = first; i <= std::min(last, n_ - 2); ++i) {
        if (is_over()) return false;
        for (int j = i + 1; j <= std::min(i + span, n_ - 1); ++j) gains |= change(i, j);
      }
    }
    return true;
  }

  void reset(const std::vector<int32_t>& order) {
    order_ = order;
    measure(1);
  }

  // Exchanges the stretches i .. middle - 1 and middle .. j.
  void exchange(int i, int middle, int j) {
    std::rotate(order_.begin() + i, order_.begin() + middle, order_.begin() + j + 1);
    measure(i);
  }

 private:
  // Where the tour stands after a place of the order; number n: back at the depot.
  struct Mark {
    double now, late, length;
  };

  double way(int from, int to) const { return ways_[static_cast<size_t>(from) * n_ + to]; }
  int place(int position) const { return order_[position < n_ ? position : 0]; }

  Mark after(const Mark& before, int from, int to) const {
    const double arrival = before.now + way(from, to);
    return {places_.leave(to, arrival), before.late + std::max(arrival - places_.closes(to), 0.0),
            before.length + way(from, to)};
  }

  // The marks from a position on.
  void measure(int from) {
    marks_[0] = {places_.leave(0, places_.opens(0)), 0.0, 0.0};
    for (int i = from; i <= n_; ++i) marks_[i] = after(marks_[i - 1], place(i - 1), place(i));
  }

  // The first change of the stretch i .. j that gains.
  bool change(int i, int j) {
    for (int moved = 1; moved <= std::min(kLongestMoved, j - i); ++moved) {
      if (try_exchange(i, i + moved, j)) return true;
      if (j + 1 - moved != i + moved && try_exchange(i, j + 1 - moved, j)) return true;
    }
    return j > i + 1 && try_reversal(i, j);
  }

  bool try_exchange(int i, int middle, int j) {
    const int before = place(i - 1), a = place(i), b = place(middle - 1), c = place(middle), d = place(j),
              behind = place(j + 1);
    const double change =
        (way(before, c) + way(d, a) + way(b, behind)) - (way(before, a) + way(b, c) + way(d, behind));
    if (!may_gain(change)) return false;
    stretch_.assign(order_.begin() + middle, order_.begin() + j + 1);
    stretch_.insert(stretch_.end(), order_.begin() + i, order_.begin() + middle);
    return take_if_better(i);
  }

  bool try_reversal(int i, int j) {
    const double change = (way(place(i - 1), place(j)) + way(place(i), place(j + 1))) -
                          (way(place(i - 1), place(i)) + way(place(j), place(j + 1)));
    if (is_symmetric_ && !may_gain(change)) return false;
    stretch_.assign(order_.begin() + i, order_.begin() + j + 1);
    std::ranges::reverse(stretch_);
    return take_if_better(i);
  }

  // A tour in time can only become shorter.
  bool may_gain(double change) {
    ++looks_;
    return late() > 0.0 || change < -kRounding * length();
  }

  // With the stretch in place of as many places from position i on.
  bool take_if_better(int i) {
    const int end = i + static_cast<int>(stretch_.size());
    Mark mark = marks_[i - 1];
    int from = place(i - 1);
    for (const int32_t to : stretch_) {
      mark = after(mark, from, to);
      from = to;
      if (mark.late > late()) return false;
    }
    for (int at = end; at <= n_ && mark.late <= late(); ++at) {
      mark = after(mark, from, place(at));
      from = place(at);
      if (mark.now != marks_[at].now) continue;
      mark.late += late() - marks_[at].late;  // from here on all is as before
      mark.length += length() - marks_[at].length;
      break;
    }
    looks_ += end - i;
    const bool is_better = mark.late != late() ? mark.late < late() * (1.0 - kRounding)
                                               : mark.length < length() * (1.0 - kRounding);
    if (!is_better) return false;
    std::ranges::copy(stretch_, order_.begin() + i);
    measure(i);
    return true;
  }

  const InstancePlaces places_;
  const int n_;
  std::vector<double> ways_;  // [n][n]
  bool is_symmetric_ = true;
  std::vector<int32_t> order_, stretch_;
  std::vector<Mark> marks_;  // [n + 1]
  int64_t looks_ = 0;
};

// Asks a control after so much work.
class Looks {
 public:
  Looks(const TimedOrder& order, const SearchControl& control) : order_(order), control_(control) {}

  bool are_over() {
    if (order_.looks() - asked_ < kLooksPerCheck) return is_over_;
    asked_ = order_.looks();
    is_over_ = control_.check() != Status::kDone;
    return is_over_;
  }

 private:
  const TimedOrder& order_;
  const SearchControl& control_;
  int64_t asked_ = 0;
  bool is_over_ = false;
};

// Exchanges two neighbouring stretches at random, and descends around them.
template <typename IsOver>
void kick(TimedOrder& order, std::mt19937_64& random, const IsOver& is_over) {
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<uint64_t>(count)); };
  const int i = 1 + below(order.n() - 2);
  const int j = i + 1 + below(std::min(kKickSpan, order.n() - 1 - i));
  order.exchange(i, i + 1 + below(j - i), j);
  order.descend(i - kKickSpan, j, kKickSpan, is_over);
}

}  // namespace

TimedSearch::TimedSearch(const Instance& instance, const ImproveOptions& options)
    : instance_(instance), options_(options) {}

Solution TimedSearch::start(const SearchControl&) const { return quick_answer(instance_); }

bool TimedSearch::descend(Solution& solution, const SearchControl& control) const {
  return search(solution, 0, control);
}

bool TimedSearch::improve(Solution& solution, const SearchControl& control, WorkerThreads*) const {
  return search(solution, kicks_of(instance_, options_, control), control);
}

bool TimedSearch::search(Solution& solution, int64_t kicks, const SearchControl& control) const {
  if (instance_.n() < 3) return true;  // one tour
  TimedOrder order(instance_, solution.order);
  Looks looks(order, control);
  const auto is_over = [&] { return looks.are_over(); };
  bool finished = order.descend(1, order.n(), kSpan, is_over);
  std::vector<int32_t> best = order.order();
  std::mt19937_64 random(options_.seed);
  for (; finished && solution.kicks < kicks; ++solution.kicks) {
    const double late = order.late(), length = order.length();
    kick(order, random, is_over);
    finished = !is_over();
    const bool is_worse = order.late() != late ? order.late() > late : order.length() > length;
    if (is_worse) {
      order.reset(best);
    } else {
      best = order.order();
    }
    if (control.report.on_best && order.late() <= 0.0) control.report.on_best(order.length());
  }
  Solution improved = solution;
  improved.order = std::move(best);
  require_valid(instance_, improved, "local search left no tour: ");
  if (is_better(instance_.problem, improved, solution)) solution = std::move(improved);
  return finished;
}

}  // namespace pointsman
