// Which experts rows go to: the best of their scores, ties, weights, and the order in which choices are numbered.
#include "../program/expert_routing.h"

#include <cmath>
#include <limits>
#include <vector>

#include "support/check.h"
#include "support/weight_cases.h"

namespace octavo::test {

namespace {

constexpr int64_t kExperts = 7;

void check_choices() {
    Random random(1);
    std::vector<float> scores(kExperts * 100);
    for (float& score : scores) score = 4.0f * random.uniform();
    for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        ExpertRouting routing;
        for (const int64_t top_k : {int64_t{1}, int64_t{3}, kExperts}) {
            for (const bool among_chosen : {false, true}) {
                routing.choose({scores.data(), kExperts}, 100, kExperts, {top_k, false, among_chosen}, nullptr, nullptr, pool);
                CHECK(routing.first(0) == 0 && routing.first(kExperts) == 100 * top_k);
                for (int64_t row = 0; row < 100; ++row) {
                    const float* of_row = scores.data() + row * kExperts;
                    float chosen_sum = 0.0f;
                    float all_sum = 0.0f;
                    for (int64_t expert = 0; expert < kExperts; ++expert) {
                        int64_t better = 0;
                        for (int64_t other = 0; other < kExperts; ++other) better += of_row[other] > of_row[expert];
                        int64_t found = -1;
                        for (int64_t k = 0; k < top_k; ++k) {
                            const int64_t choice = routing.choice(row, k);
                            if (choice >= routing.first(expert) && choice < routing.first(expert + 1)) found = k;
                        }
                        CHECK((found >= 0) == (better < top_k));
                        all_sum += std::exp(of_row[expert]);
                        if (found >= 0) chosen_sum += std::exp(of_row[expert]);
                    }
                    float weight_sum = 0.0f;
                    for (int64_t k = 0; k < top_k; ++k) {
                        CHECK(routing.row_of(routing.choice(row, k)) == row);
                        if (k > 0) CHECK(routing.choice(row, k) > routing.choice(row, k - 1));
                        weight_sum += routing.weight(row, k);
                    }
                    CHECK(std::abs(weight_sum - (among_chosen ? 1.0f : chosen_sum / all_sum)) < 1e-5f);
                }
                for (int64_t expert = 0; expert < kExperts; ++expert) {
                    for (int64_t choice = routing.first(expert) + 1; choice < routing.first(expert + 1); ++choice) {
                        CHECK(routing.row_of(choice) > routing.row_of(choice - 1));
                    }
                }
            }
        }
    }
}

/// Every row gets experts of its own, whatever its scores are; NaN stays in its row.
void check_odd_scores() {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float inf = std::numeric_limits<float>::infinity();
    std::vector<float> scores = {
        1, 1, 1, 1, 1, 1, 1,                  // ties go to the lower experts
        nan, 1, 2, 0, 0, 0, 0,                //
        nan, nan, nan, nan, nan, nan, nan,    //
        -inf, -inf, -inf, -inf, -inf, -inf, -inf,
        0, 0, 0, 0, 0, 0, inf,                //
        3, 2, 1, 0, -1, -2, -3,               //
    };
    ThreadPool pool(1);
    ExpertRouting routing;
    routing.choose({scores.data(), kExperts}, 6, kExperts, {2}, nullptr, nullptr, pool);
    const auto expert_of = [&](int64_t row, int64_t k) {
        int64_t expert = 0;
        while (routing.first(expert + 1) <= routing.choice(row, k)) ++expert;
        return expert;
    };
    CHECK(expert_of(0, 0) == 0 && expert_of(0, 1) == 1);
    CHECK(routing.weight(0, 0) == 0.5f && routing.weight(0, 1) == 0.5f);
    CHECK(expert_of(1, 0) == 1 && expert_of(1, 1) == 2);
    CHECK(expert_of(2, 0) != expert_of(2, 1) && std::isnan(routing.weight(2, 0)));
    CHECK(expert_of(3, 0) != expert_of(3, 1) && std::isnan(routing.weight(3, 0)));
    CHECK(expert_of(4, 1) == 6 && std::isnan(routing.weight(4, 1)));
    CHECK(expert_of(5, 0) == 0 && std::abs(routing.weight(5, 0) - 1.0f / (1.0f + std::exp(-1.0f))) < 1e-6f);
}

}  // namespace

}  // namespace octavo::test

int main() {
    octavo::test::check_choices();
    octavo::test::check_odd_scores();
    return octavo::test::finish("expert_routing_test");
}
