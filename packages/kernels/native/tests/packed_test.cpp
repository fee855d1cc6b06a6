// Packed matrices as bytes: mapped from a file, checked by their checksums, and the same from one build to the next.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../matrix/layout.h"
#include "../matrix/packed_form.h"
#include "support/check.h"
#include "support/weight_cases.h"
#include "support/targets.h"
#include "support/temporary_file.h"

namespace octavo::test {

namespace {

PackedForm form_of(const Sample& sample, const WeightCase& weight) {
    return {sample.type, sample.rows, sample.cols, sample.group, weight.zeros};
}

Sample sample_of(const WeightCase& weight) {
    return make_sample(weight, 37, weight.column_unit == 1 ? 33 : 2 * weight.column_unit, 17);
}

void check_mapping(const WeightCase& weight, ThreadPool& pool) {
    constexpr size_t kOffset = 4096;
    const Sample sample = sample_of(weight);
    const PackedForm form = form_of(sample, weight);
    const std::unique_ptr<Matrix> packed = Matrix::pack({sample.source()}, pool);
    CHECK_MESSAGE(packed->bytes() == packed_bytes(form), std::string(weight.label) + ": another size than its form says");
    const TemporaryFile file(std::string(kOffset, '\0') +
                             std::string(reinterpret_cast<const char*>(packed->packed()), packed->bytes()));
    const auto mapping = std::make_shared<MappedFile>(file.path());
    const std::unique_ptr<Matrix> mapped = map_packed(form, mapping, kOffset);
    CHECK(packed_checksum(mapped->packed(), mapped->bytes(), pool) == packed_checksum(packed->packed(), packed->bytes(), pool));
    std::vector<float> row(static_cast<size_t>(sample.cols));
    bool equal = true;
    for (int64_t r = 0; r < sample.rows; ++r) {
        mapped->row(r, row.data());
        equal = equal && std::memcmp(row.data(), sample.weights.data() + r * sample.cols, row.size() * sizeof(float)) == 0;
    }
    CHECK_MESSAGE(equal, std::string(weight.label) + ": a mapped row differs");
    CHECK(message_of([&] { map_packed(form, mapping, kOffset + 64); }).find("holds no packed matrix") != std::string::npos);
    CHECK(message_of([&] { map_packed(form, mapping, kOffset - 1); }).find("holds no packed matrix") != std::string::npos);
    PackedForm wrong = form;
    wrong.cols = 0;
    CHECK(packed_bytes(wrong) == 0 && !message_of([&] { map_packed(wrong, mapping, kOffset); }).empty());
}

/// Every bit counts, wherever it stands, and threads do not.
void check_checksums(ThreadPool& one, ThreadPool& three) {
    std::vector<uint8_t> bytes((size_t{2} << 20) + 77);
    Random random(5);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    const uint64_t sound = packed_checksum(bytes.data(), bytes.size(), one);
    CHECK(packed_checksum(bytes.data(), bytes.size(), three) == sound);
    for (const size_t at : {size_t{0}, size_t{63}, size_t{64}, (size_t{1} << 20) - 1, size_t{1} << 20, bytes.size() - 1}) {
        bytes[at] ^= 0x10;
        CHECK(packed_checksum(bytes.data(), bytes.size(), three) != sound);
        bytes[at] ^= 0x10;
    }
    CHECK(packed_checksum(bytes.data(), bytes.size() - 1, one) != sound);
    std::swap(bytes[100], bytes[101]);
    CHECK(bytes[100] == bytes[101] || packed_checksum(bytes.data(), bytes.size(), one) != sound);
}

struct KnownLayout {
    const char* label;
    uint64_t checksum;
};

/// Digests of layout version 2. Files of packed weights outlive builds: when one of these changes because the layout was meant to, raise
/// kPackedLayoutVersion and write down the new values.
constexpr int kKnownVersion = 2;
constexpr KnownLayout kKnownLayouts[] = {
    {"f32", 0x99d347c514e1b8f2},
    {"f16", 0x8a6d24a7fa2ab6d3},
    {"bf16", 0xb189d4fca22b3ccc},
    {"q4_0", 0x3ef79afe37eea2a0},
    {"q5_0", 0xacfcbf02b720fee6},
    {"q8_0", 0x016721129b68e529},
    {"q4_k", 0x5fb8f5e4b4fd059f},
    {"q5_k", 0xc62cf71014825a1c},
    {"q6_k", 0x5f9743d1aaa81466},
    {"int8/32", 0xf870eaf650e9ff1b},
    {"int8/128", 0x20f36c2aec73627c},
    {"int4/32", 0x0c2634e0d78585f1},
    {"int4z/64", 0x48089da901c64d81},
    {"int4z/128", 0x73c7c1a089a23997},
    {"q4_1", 0xfc2535933a142944},
    {"q5_1", 0xdeabc671ef834f63},
    {"q2_k", 0xd8c9b76bda9f8f4a},
    {"q3_k", 0x87912909ebd646c3},
    {"iq4_nl", 0x3ef79afe37eea2a0},
    {"iq4_xs", 0x3b5f13b281d63ff4},
    {"mxfp4", 0x52bec03725a038bd},
    {"int2z/64", 0x5a185eb10a5b667b},
    {"int3z/128", 0x1638a21d25d0bdc6},
    {"uint8z/64", 0xfc7dadabac4a1d43},
};

void check_layout(ThreadPool& pool) {
    CHECK(kPackedLayoutVersion == kKnownVersion);
    for (const KnownLayout& known : kKnownLayouts) {
        for (const WeightCase& weight : kWeightCases) {
            if (std::strcmp(weight.label, known.label) != 0) continue;
            for (const Target& target : targets()) {
                set_isa_for_test(target.isa, target.bf16);
                const std::unique_ptr<Matrix> matrix = Matrix::pack({sample_of(weight).source()}, pool);
                const uint64_t sum = packed_checksum(matrix->packed(), matrix->bytes(), pool);
                char text[20];
                std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(sum));
                CHECK_MESSAGE(sum == known.checksum, std::string(weight.label) + " on " + target.name() + " now packs as " + text);
            }
        }
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    ThreadPool one(1);
    ThreadPool three(3);
    for (const WeightCase& weight : kWeightCases) {
        if (is_codebook(weight.type, weight.group)) {
            const Sample sample = sample_of(weight);
            CHECK(Matrix::pack({sample.source()}, three)->packed() == nullptr);
            CHECK(packed_bytes(form_of(sample, weight)) == 0);
        } else {
            check_mapping(weight, three);
        }
    }
    check_checksums(one, three);
    check_layout(three);
    return finish("packed_test");
}
