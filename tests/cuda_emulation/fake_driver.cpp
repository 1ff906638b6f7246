// SPDX-License-Identifier: Apache-2.0
// An empty libcuda.so.1: all that the program asks of a driver is that there is one.
