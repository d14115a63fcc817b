// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

int main(int argc, char** argv) { return truenorm::test::run_all(argc, argv); }
