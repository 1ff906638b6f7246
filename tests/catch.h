// SPDX-License-Identifier: Apache-2.0
// Catch2 2.13 (Debian 12) and 3 (Ubuntu 24.04) under one include.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <cmath>

// The larger of two errors, NaN if either is: std::max would drop the one that was never written.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }
