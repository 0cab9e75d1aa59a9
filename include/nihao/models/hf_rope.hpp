// The rotary embedding as Hugging Face configs state it, old form and new.
#pragma once

#include "../files/json.hpp"
#include "../kernels/rope.hpp"

#include <cmath>
#include <optional>
#include <string_view>

namespace nihao::detail {

/// Where a config says how its layers turn.
struct HfRopeKeys {
  std::string_view scaling;     ///< the old form's object: "rope_scaling"; "": these layers have none
  std::string_view parameters;  ///< the new form's object: "rope_parameters"
  std::string_view theta;       ///< the old form's base: "rope_theta"
  double theta_by_default;
  bool part = false;             ///< the family may turn a part of each head alone
  double part_by_default = 1.0;  ///< which part
};

/// What they say: the embedding, and which part of each head turns.
struct HfRope {
  RopeParams params;
  double part = 1;
};

/// One such object: {"rope_type": "yarn", "factor": 4.0, ...}. A key that is not known may change the result, so it is an error.
[[nodiscard]] inline Expected<RopeParams> hf_rope_object(const Json& json, std::string_view path, double base, bool part) {
  const Json& object = *json_find(json, path);
  const auto* members = object.get_ptr<const Json::object_t*>();
  if (members == nullptr)
    return Error{ErrorCode::mismatch, concat("wanted an object, found ", json_kind(object)), std::string(path)};
  for (const auto& [key, value] : *members) {
    constexpr std::string_view known[] = {"rope_type",        "type",
                                          "rope_theta",       "factor",
                                          "beta_fast",        "beta_slow",
                                          "attention_factor", "low_freq_factor",
                                          "high_freq_factor", "mscale",
                                          "mscale_all_dim",   "original_max_position_embeddings",
                                          "truncate",         "partial_rotary_factor",
                                          "short_factor",     "long_factor",
                                          "short_mscale",     "long_mscale"};
    bool is_known = false;
    for (const std::string_view k : known) is_known = is_known || k == key;
    if (!is_known)
      return Error{ErrorCode::unsupported, concat("unknown key, value ", json_kind(value)), concat(path, ".", printable(key))};
  }
  const auto at = [&](std::string_view key) { return concat(path, ".", key); };
  const auto number = [&](std::string_view key) { return json_get<double>(json, at(key)); };
  const auto number_or = [&](std::string_view key, double otherwise) { return json_get_or<double>(json, at(key), otherwise); };

  RopeParams rope;
  NIHAO_TRY(rope.base, number_or("rope_theta", base));
  NIHAO_TRY(const double rotated, number_or("partial_rotary_factor", 1.0));
  if (rotated != 1.0 && !part)
    return Error{ErrorCode::unsupported, concat("it is ", rotated, ", and all values are rotated here"),
                 at("partial_rotary_factor")};
  // Without a type nothing would be scaled, whatever else is stated. Only the new form has objects with the base alone.
  bool scales = path == "rope_scaling";
  for (const auto& [key, value] : *members) scales = scales || (key != "rope_theta" && key != "partial_rotary_factor");
  const auto names = [&](std::string_view key) {
    const Json* value = json_find(json, at(key));
    return value != nullptr && !value->is_null();
  };
  if (scales && !names("rope_type") && !names("type"))
    return Error{ErrorCode::missing, "it does not say how it scales", at("rope_type")};
  // Old files say "type", newer ones "rope_type", some both.
  NIHAO_TRY(const auto old_type, json_get_or<std::string_view>(json, at("type"), ""));
  NIHAO_TRY(const auto type,
            json_get_or<std::string_view>(json, at("rope_type"), old_type.empty() ? std::string_view("default") : old_type));
  if (!old_type.empty() && old_type != type)
    return Error{ErrorCode::mismatch, concat("\"", printable(old_type), "\", but rope_type is \"", printable(type), "\""),
                 at("type")};
  if (type == "default") return rope;
  NIHAO_TRY(const double context, json_get_or<double>(json, "max_position_embeddings", 0.0));
  // Beside the object, or in it: of two that differ the reference takes the one beside it.
  const auto read_original_context = [&]() -> Expected<void> {
    NIHAO_TRY(const double inside, number_or("original_max_position_embeddings", context));
    NIHAO_TRY(rope.original_context, json_get_or<double>(json, "original_max_position_embeddings", inside));
    return {};
  };
  if (type == "linear") {
    rope.scaling = RopeScaling::linear;
    NIHAO_TRY(rope.factor, number("factor"));
  } else if (type == "dynamic") {
    rope.scaling = RopeScaling::dynamic;
    NIHAO_TRY(rope.factor, number("factor"));
    rope.original_context = context;
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::llama3;
    NIHAO_TRY(rope.factor, number("factor"));
    NIHAO_TRY(rope.low_freq, number("low_freq_factor"));
    NIHAO_TRY(rope.high_freq, number("high_freq_factor"));
    NIHAO_CHECK(read_original_context());
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::yarn;
    NIHAO_CHECK(read_original_context());
    const double ratio = rope.original_context > 0 ? context / rope.original_context : 1.0;
    NIHAO_TRY(rope.factor, number_or("factor", ratio));
    NIHAO_TRY(rope.beta_fast, number_or("beta_fast", rope.beta_fast));
    NIHAO_TRY(rope.beta_slow, number_or("beta_slow", rope.beta_slow));
    NIHAO_TRY(rope.truncate, json_get_or<bool>(json, at("truncate"), json_find(json, at("truncate")) == nullptr));  // null: no
    NIHAO_TRY(const double mscale, number_or("mscale", 0.0));
    NIHAO_TRY(const double mscale_all, number_or("mscale_all_dim", 0.0));
    const double by_default = mscale != 0 && mscale_all != 0
                                  ? yarn_magnitude(rope.factor, mscale) / yarn_magnitude(rope.factor, mscale_all)
                                  : yarn_magnitude(rope.factor);
    NIHAO_TRY(rope.attention_factor, number_or("attention_factor", by_default));
    if (!(rope.attention_factor > 0))
      return Error{ErrorCode::malformed, concat("it is ", rope.attention_factor), at("attention_factor")};
  } else if (type == "longrope" || type == "su") {  // Phi 3 called it so at first
    rope.scaling = RopeScaling::longrope;
    NIHAO_TRY(rope.factors, json_array<float>(json, at("short_factor")));
    NIHAO_TRY(rope.far_factors, json_array<float>(json, at("long_factor")));
    NIHAO_CHECK(read_original_context());
    const double ratio = rope.original_context > 0 ? context / rope.original_context : 1.0;
    NIHAO_TRY(rope.factor, number_or("factor", ratio));
    const double by_default = rope.factor > 1 ? std::sqrt(1.0 + std::log(rope.factor) / std::log(rope.original_context)) : 1.0;
    NIHAO_TRY(const double attention_factor, number_or("attention_factor", by_default));
    NIHAO_TRY(rope.attention_factor, number_or("short_mscale", attention_factor));
    NIHAO_TRY(rope.far_attention_factor, number_or("long_mscale", attention_factor));
  } else {
    const std::string_view key = old_type.empty() ? "rope_type" : "type";
    return Error{ErrorCode::unsupported, concat("unknown rope type \"", printable(type), "\""), at(key)};
  }
  return rope;
}

/// The rotary embedding of the layers that `keys` speak of. Both forms may be there if they agree. Errors: missing, mismatch,
/// malformed, unsupported; each names the JSON path.
[[nodiscard]] inline Expected<HfRope> hf_rope(const Json& json, const HfRopeKeys& keys) {
  const auto stated = [&](std::string_view path) {
    const Json* value = path.empty() ? nullptr : json_find(json, path);
    return value != nullptr && !value->is_null();
  };
  NIHAO_TRY(const double base, json_get_or<double>(json, keys.theta, keys.theta_by_default));
  HfRope rope;
  if (keys.part) {
    NIHAO_TRY(const double outer, json_get_or<double>(json, "partial_rotary_factor", keys.part_by_default));
    NIHAO_TRY(rope.part, json_get_or<double>(json, concat(keys.parameters, ".partial_rotary_factor"), outer));
  }
  rope.params.base = base;
  if (stated(keys.scaling)) { NIHAO_TRY(rope.params, hf_rope_object(json, keys.scaling, base, keys.part)); }
  if (!stated(keys.parameters)) return rope;
  NIHAO_TRY(const RopeParams parameters, hf_rope_object(json, keys.parameters, base, keys.part));
  const bool both = stated(keys.scaling) || stated(keys.theta);
  if (both && (parameters.base != rope.params.base || (stated(keys.scaling) && !(parameters == rope.params))))
    return Error{ErrorCode::mismatch, concat("it contradicts ", stated(keys.scaling) ? keys.scaling : keys.theta),
                 std::string(keys.parameters)};
  rope.params = parameters;
  return rope;
}

}  // namespace nihao::detail
