// SPDX-License-Identifier: Apache-2.0
// Catch2 2.13 (Debian 12) and 3 (Ubuntu 24.04) under one include.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
