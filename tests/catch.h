// SPDX-License-Identifier: Apache-2.0
// Catch2 2.13 (Debian 12) and 3 (Ubuntu 24.04) under one include.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#define CONTAINS_TEXT Catch::Matchers::ContainsSubstring
#else
#include <catch2/catch.hpp>
#define CONTAINS_TEXT Catch::Matchers::Contains
#endif

#include <cmath>
#include <string>

// For CHECK_THROWS_WITH: the message has this in it.
inline auto has_text(const std::string& text) { return CONTAINS_TEXT(text); }
#undef CONTAINS_TEXT

// The larger of two errors, NaN if either is: std::max would drop the one that was never written.
inline double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }
