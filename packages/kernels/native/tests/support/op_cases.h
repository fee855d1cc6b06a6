#pragma once
#include <cstdint>

#include "../../ops/attention/attention.h"

namespace octavo::test {

/// A size that the tests of an op walk; benchmarks walk those with a name, which are the sizes of common models.
struct SizeCase {
    int64_t size;
    const char* name;
};

/// Widths of rows: the odd ones end in the middle of a vector.
constexpr SizeCase kRowWidths[] = {{1, nullptr},        {3, nullptr},   {8, nullptr},   {16, nullptr},
                                   {17, nullptr},       {31, nullptr},  {64, nullptr},  {100, nullptr},
                                   {257, nullptr},      {896, "qwen-0.5b hidden"},      {2048, "llama-1b hidden"},
                                   {8192, "llama-1b inner"}};

/// Vocabulary sizes.
constexpr SizeCase kLogitCounts[] = {{1, nullptr},   {5, nullptr},    {16, nullptr},           {255, nullptr},
                                     {256, nullptr}, {257, nullptr},  {1000, nullptr},         {128256, "llama-3"},
                                     {151936, "qwen-2.5"}};

struct AttentionCase {
    const char* name;
    AttentionSpec spec;
};

/// Heads of common models.
constexpr AttentionCase kAttentionModels[] = {
    {"llama-1b", {32, 8, 64, 0.125f, 0.0f, 0}},
    {"qwen-0.5b", {14, 2, 64, 0.125f, 0.0f, 0}},
    {"llama-8b", {32, 8, 128, 0.088f, 0.0f, 0}},
};

}  // namespace octavo::test
