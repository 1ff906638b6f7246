// SPDX-License-Identifier: Apache-2.0
// Catch2 3 brings its own main; 2.13 wants it compiled once.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "tests/catch.h"
