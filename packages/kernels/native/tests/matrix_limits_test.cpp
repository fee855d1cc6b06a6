// Packed matrices at their limits: weights, activations and shapes that are refused, spoil a row, or are as large as they get.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../matrix/matrix.h"
#include "support/check.h"
#include "support/products.h"
#include "support/reference.h"
#include "support/weight_cases.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

/// A row of activations that is not finite turns into NaN and leaves its neighbours alone.
void check_bad_activations(const WeightCase& weight, ThreadPool& pool) {
    const int64_t cols = 256;
    const Sample sample = make_sample(weight, 20, cols, 77);
    const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, pool);
    Workspace workspace;
    for (const int64_t m : {int64_t{3}, int64_t{12}}) {
        std::vector<float> x = activations(m * cols, 9);
        std::vector<float> clean(static_cast<size_t>(m * 20));
        matrix->linear(x.data(), cols, m, clean.data(), 20, nullptr, workspace, pool);
        x[static_cast<size_t>(cols + 70)] = std::numeric_limits<float>::quiet_NaN();
        std::vector<float> y(static_cast<size_t>(m * 20));
        matrix->linear(x.data(), cols, m, y.data(), 20, nullptr, workspace, pool);
        bool all_nan = true;
        for (int r = 0; r < 20; ++r) all_nan = all_nan && std::isnan(y[static_cast<size_t>(20 + r)]);
        CHECK_MESSAGE(all_nan, std::string(weight.label) + ": a NaN activation was lost");
        CHECK_MESSAGE(same_bits(y.data(), clean.data(), 20) && same_bits(y.data() + 40, clean.data() + 40, (m - 2) * 20),
                      std::string(weight.label) + ": a NaN activation reached another row");
        // Zeros and values near the smallest ones give finite sums.
        for (int64_t c = 0; c < cols; ++c) x[static_cast<size_t>(cols + c)] = c < 64 ? 0.0f : 1e-38f;
        matrix->linear(x.data(), cols, m, y.data(), 20, nullptr, workspace, pool);
        bool finite = true;
        for (int r = 0; r < 20; ++r) finite = finite && std::isfinite(y[static_cast<size_t>(20 + r)]);
        CHECK_MESSAGE(finite, std::string(weight.label) + ": tiny activations overflow");
    }
}

void check_rejections(const WeightCase& weight, ThreadPool& pool) {
    const int64_t cols = 512;
    const auto rejected = [&](Sample sample, std::vector<uint8_t>& bytes, size_t at, std::vector<uint8_t> bad) {
        std::memcpy(bytes.data() + at, bad.data(), bad.size());
        sample.name = "blk.3.attn_q.weight";
        const std::string message = message_of([&] {
            MatrixSource source = sample.source();
            if (!bytes.empty() && bytes.size() == sample.values.size()) source.values = bytes.data();
            if (!sample.scales.empty() && bytes.size() == sample.scales.size()) source.scales = bytes.data();
            Matrix::pack({source}, pool);
        });
        CHECK_MESSAGE(message.find("blk.3.attn_q.weight") != std::string::npos && message.find("not finite") != std::string::npos,
                      std::string(weight.label) + ": a weight that is not finite was taken; message: " + message);
        CHECK_MESSAGE(message.find("row 20") != std::string::npos, std::string(weight.label) + ": wrong row in: " + message);
    };
    const Sample sample = make_sample(weight, 21, cols, 41);
    const size_t row_bytes = sample.values.size() / 21;
    std::vector<uint8_t> values = sample.values;
    std::vector<uint8_t> scales = sample.scales;
    const size_t last_row = 20 * row_bytes;
    const std::vector<uint8_t> nan16 = {0x01, 0x7e};
    // The block that is spoiled is not the row's first, where there are several.
    const size_t block = row_bytes / static_cast<size_t>(cols / weight.column_unit);
    const size_t first = last_row + row_bytes / 2 + (weight.scales_end_block() ? block - static_cast<size_t>(weight.scale_bytes) : 0);
    for (int64_t at = 0; at + 2 <= weight.scale_bytes; at += 2) {
        rejected(sample, values = sample.values, first + static_cast<size_t>(at), nan16);
    }
    if (!sample.scales.empty()) rejected(sample, scales, scales.size() - 4, {0, 0, 0xc0, 0x7f});
    switch (weight.type) {
        case WeightType::f32:
            rejected(sample, values, last_row + 4 * 300, {0, 0, 0x80, 0xff});
            break;
        case WeightType::f16:
            rejected(sample, values, last_row + 2 * 511, nan16);
            break;
        case WeightType::bf16:
            rejected(sample, values, last_row + 2 * 300, {0x81, 0x7f});
            break;
        case WeightType::mxfp4:
            rejected(sample, values, last_row + 3 * 17, {255});
            rejected(sample, values = sample.values, last_row, {253});
            break;
        case WeightType::int8:
        case WeightType::int4:
        case WeightType::int3:
        case WeightType::int2:
            rejected(sample, scales = sample.scales, scales.size() - 4, {0xff, 0xff, 0x7f, 0x7f});
            break;
        case WeightType::f8_e4m3:
            rejected(sample, values, last_row + 300, {0xff});
            rejected(sample, values = sample.values, last_row, {0x7f});
            break;
        default:
            break;
    }
}

void check_bad_shapes(ThreadPool& pool) {
    const Sample q4 = make_sample(WeightType::q4_0, 4, 64, 0, false, 1);
    const Sample k = make_sample(WeightType::q4_k, 4, 256, 0, false, 2);
    const Sample int4 = make_sample(WeightType::int4, 4, 128, 64, true, 3);
    MatrixSource source = q4.source();
    source.cols = 40;
    CHECK(message_of([&] { Matrix::pack({source}, pool); }).find("multiples of 32") != std::string::npos);
    source = k.source();
    source.cols = 128;
    CHECK(message_of([&] { Matrix::pack({source}, pool); }).find("multiples of 256") != std::string::npos);
    source = int4.source();
    source.group = 48;
    CHECK(message_of([&] { Matrix::pack({source}, pool); }).find("group size 48") != std::string::npos);
    source = int4.source();
    source.scales = nullptr;
    CHECK(message_of([&] { Matrix::pack({source}, pool); }).find("no scales") != std::string::npos);
    CHECK(message_of([&] { Matrix::pack({q4.source(), int4.source()}, pool); }).find("cannot be stacked") != std::string::npos);
    CHECK(!message_of([&] { Matrix::pack({}, pool); }).empty());
    source = q4.source();
    source.rows = 0;
    CHECK(message_of([&] { Matrix::pack({source}, pool); }).find("is empty") != std::string::npos);
}

/// The largest codes against the largest activations, where narrow integer sums would saturate or wrap.
void check_extremes(const WeightCase& weight, ThreadPool& pool, const std::string& label) {
    // An E4M3 code of all ones is no number.
    if (is_float(weight.type) || weight.type == WeightType::f8_e4m3) return;
    const int64_t cols = 512;
    const int64_t rows = 16;
    for (const uint8_t fill : {uint8_t{0xff}, uint8_t{0x80}, uint8_t{0x7f}, uint8_t{0x00}}) {
        Sample sample = make_sample(weight, rows, cols, 15);
        const Sample scales = sample;
        std::memset(sample.values.data(), fill, sample.values.size());
        // Block scales must stay numbers: they come back from the random sample.
        const bool blocks = weight.scale_bytes > 0;
        const size_t block = blocks ? sample.values.size() / static_cast<size_t>(rows * cols / weight.column_unit) : 1;
        for (size_t at = 0; blocks && at < sample.values.size(); at += block) {
            const size_t first = at + (weight.scales_end_block() ? block - static_cast<size_t>(weight.scale_bytes) : 0);
            std::memcpy(sample.values.data() + first, scales.values.data() + first, static_cast<size_t>(weight.scale_bytes));
        }
        const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, pool);
        for (int64_t r = 0; r < rows; ++r) matrix->row(r, sample.weights.data() + r * cols);
        for (const int alternate : {0, 1}) {
            std::vector<float> x(static_cast<size_t>(cols), -3.0f);
            for (size_t i = 0; alternate == 1 && i < x.size(); i += 2) x[i] = 3.0f;
            const Reference reference = reference_linear(sample, x.data(), cols, 1);
            std::vector<float> many(static_cast<size_t>(kManyRows * cols));
            for (size_t i = 0; i < many.size(); ++i) many[i] = x[i % x.size()];
            std::vector<float> y(static_cast<size_t>(kManyRows * rows));
            Workspace workspace;
            matrix->linear(many.data(), cols, kManyRows, y.data(), rows, nullptr, workspace, pool);
            bool right = true;
            for (size_t i = 0; i < y.size(); ++i) {
                const size_t r = i % static_cast<size_t>(rows);
                right = right && std::fabs(y[i] - reference.y[r]) <= (kTolerance + weight.rounding) * (reference.magnitude[r] + 1.0);
            }
            CHECK_MESSAGE(right, label + ": extreme codes " + std::to_string(fill) + " give a wrong sum");
        }
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    ThreadPool two(2);
    for (const WeightCase& weight : kWeightCases) {
        for (const Target& target : targets()) {
            set_isa_for_test(target.isa, target.bf16);
            check_bad_activations(weight, two);
            check_extremes(weight, two, std::string(weight.label) + " " + target.name());
        }
        check_rejections(weight, two);
    }
    check_bad_shapes(two);
    return finish("matrix_limits_test");
}
