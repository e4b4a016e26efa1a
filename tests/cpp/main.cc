// The entry of the doctest binary: everything else in tests/cpp only registers test cases.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
