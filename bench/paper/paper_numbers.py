# SPDX-License-Identifier: Apache-2.0
"""The numbers of Bello, Pham, Le, Norouzi, Bengio: Neural Combinatorial Optimization with Reinforcement Learning, 2017.

TSP: mean tour lengths; KnapSack: mean values; by (problem, n). The test instances were others than ours, so compare
distances from the optima, not means."""

OPTIMAL = {("tsp", 20): 3.82, ("tsp", 50): 5.68, ("tsp", 100): 7.77,
           ("knapsack", 50): 20.07, ("knapsack", 100): 40.50, ("knapsack", 200): 57.45}

# Tables 2 and 5. The supervised lengths of 20 and 50 cities are those of Vinyals et al. 2015.
SUPERVISED = {("tsp", 20): 3.88, ("tsp", 50): 6.09, ("tsp", 100): 10.81}
GREEDY = {("tsp", 20): 3.89, ("tsp", 50): 5.95, ("tsp", 100): 8.30,
          ("knapsack", 50): 19.86, ("knapsack", 100): 40.27, ("knapsack", 200): 57.10}
GREEDY_OF_16 = {("tsp", 50): 5.80, ("tsp", 100): 7.97}
SAMPLING = {("tsp", 20): 3.82, ("tsp", 50): 5.70, ("tsp", 100): 7.88}
ACTIVE_SEARCH = {("tsp", 20): 3.82, ("tsp", 50): 5.70, ("tsp", 100): 7.83}
FROM_SCRATCH = {("tsp", 20): 3.96, ("tsp", 50): 5.87, ("tsp", 100): 8.19,
                ("knapsack", 50): 20.07, ("knapsack", 100): 40.50, ("knapsack", 200): 57.45}
CHRISTOFIDES = {("tsp", 20): 4.30, ("tsp", 50): 6.62, ("tsp", 100): 9.18}
LOCAL_SEARCH = {("tsp", 20): 3.85, ("tsp", 50): 5.80, ("tsp", 100): 7.99}  # OR-Tools'
RANDOM = {("knapsack", 50): 17.91, ("knapsack", 100): 33.23, ("knapsack", 200): 35.95}
RATIO = {("knapsack", 50): 19.24, ("knapsack", 100): 38.53, ("knapsack", 200): 55.42}

# Table 3: seconds an instance, networks on a K80 and the others on one core; 50 and 100 cities.
SECONDS = {"greedy": (0.003, 0.01), "greedy of 16 models": (0.04, 0.15), "OR-Tools' local search": (0.02, 0.10),
           "Concorde": (0.05, 0.22), "LK-H": (0.14, 0.88)}

# Table 4: after so many tours sampling at T = 1, at T*, and active search; and the seconds of each.
SEARCH = {50: {128: (5.80, 5.80, 5.80), 1280: (5.77, 5.75, 5.76), 12800: (5.75, 5.73, 5.74),
               128000: (5.73, 5.71, 5.72), 1280000: (5.72, 5.70, 5.70)},
          100: {128: (8.05, 8.09, 8.04), 1280: (8.00, 8.00, 7.98), 12800: (7.95, 7.95, 7.92),
                128000: (7.92, 7.91, 7.87), 1280000: (7.89, 7.88, 7.83)}}
SEARCH_SECONDS = {50: {128: (3.4, 3.4, 0.5), 1280: (3.4, 3.4, 5), 12800: (13.8, 13.8, 50),
                       128000: (110, 110, 500), 1280000: (1080, 1080, 5000)},
                  100: {128: (10.3, 10.3, 1.2), 1280: (10.3, 10.3, 12), 12800: (31, 31, 120),
                        128000: (265, 265, 1200), 1280000: (2640, 2640, 12000)}}
TEMPERATURE = {20: 2.0, 50: 2.2, 100: 1.5}  # T*

# Table 6: OR-Tools' metaheuristics after 1, 128, 1,280, .. solutions.
METAHEURISTICS = {50: {"simulated annealing": (6.62, 5.81, 5.81, 5.81, 5.81, 5.81),
                       "tabu search": (6.62, 5.79, 5.73, 5.69, 5.68, 5.68),
                       "guided local search": (6.62, 5.76, 5.69, 5.68, 5.68, 5.68)},
                  100: {"simulated annealing": (9.18, 8.00, 7.99, 7.99, 7.99, 7.99),
                        "tabu search": (9.18, 7.99, 7.93, 7.84, 7.79, 7.78),
                        "guided local search": (9.18, 7.94, 7.84, 7.77, 7.77, 7.77)}}


def gap(key, cost):
    """Its distance from the optimum in percent; two decimals of the paper leave 0.3 (TSP) or 0.05 (KnapSack) unknown."""
    return 100 * (cost / OPTIMAL[key] - 1) * (1 if key[0] == "tsp" else -1)
