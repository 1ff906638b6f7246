// SPDX-License-Identifier: Apache-2.0
// What a caller of the local search for tours (two_opt.h) has to know.
#pragma once

namespace pointsman {

inline constexpr int kFewestTourCities = 10;  // so that a city has enough neighbours, and moves have room
// So that every device's shared memory holds a tour (TourMemory), and cities are 16-bit numbers.
inline constexpr int kMostTourCities = 10000;

// Instead of a number of kicks.
inline constexpr int kDescentStopped = -1;  // there is a tour, but no local optimum
inline constexpr int kNotBegun = -2;        // there is no tour

}  // namespace pointsman
