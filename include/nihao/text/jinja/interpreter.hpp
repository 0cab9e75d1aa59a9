// Runs a parsed template: a walk over its statements, with one output.
#pragma once

#include "evaluator.hpp"

namespace nihao::jinja {

/// Looks up every filter and test once. Errors: unsupported, for a name that Jinja would refuse when it compiles the template
/// (one inside an `if` is refused when it runs).
[[nodiscard]] inline Expected<void> resolve(Template& t) {
  for (Ast& node : t.nodes) {
    if (node.kind == NodeKind::filter) node.builtin = find_filter(node.text);
    else if (node.kind == NodeKind::test) node.builtin = find_test(node.text);
    else continue;
    if (!node.builtin && !node.conditional) {
      return Error{ErrorCode::unsupported,
                   concat("No ", node.kind == NodeKind::filter ? "filter" : "test", " named '", printable(node.text), "'."),
                   line_of(node.line)};
    }
  }
  return {};
}

namespace detail {

class Interpreter final : public Evaluator {
 public:
  Interpreter(const Template& source, const Value& context, const Limits& limits, const std::optional<DateTime>& now)
      : Evaluator(source, context, limits, now) {
    const auto symbol_of = [&](std::string_view name) {
      const auto at = std::find(source.names.begin(), source.names.end(), name);
      return at == source.names.end() ? no_symbol : static_cast<Symbol>(at - source.names.begin());
    };
    loop_ = symbol_of("loop");
    caller_ = symbol_of("caller");
    varargs_ = symbol_of("varargs");
    kwargs_ = symbol_of("kwargs");
  }

  [[nodiscard]] Expected<std::string> run() {
    std::string out;
    out_ = &out;
    ScopeHolder scope(*this, nullptr);
    NIHAO_CHECK(exec(template_.body));
    return out;
  }

 private:
  enum class Flow : std::uint8_t { normal, break_, continue_ };
  static constexpr Symbol no_symbol = static_cast<Symbol>(-1);

  // --------------------------------------------------------------------------------------------------------------- output

  [[nodiscard]] Expected<void> write(std::string_view text) {
    const std::size_t before = out_->size();
    out_->append(text);
    return wrote(before);
  }
  [[nodiscard]] Expected<void> wrote(std::size_t before) {
    budget().alive += out_->size() - before;
    if (out_->size() > limits().output_bytes) fail("bytes of output");
    if (!tick()) return failure();
    return {};
  }
  /// What `body` writes, as text of its own.
  [[nodiscard]] Expected<std::string> captured(const std::vector<NodeId>& body) {
    std::string text;
    std::string* const outer = std::exchange(out_, &text);
    auto flow = exec(body);
    out_ = outer;
    budget().alive -= std::min(budget().alive, text.size());
    if (!flow) return std::move(flow).error();
    return text;
  }

  // ----------------------------------------------------------------------------------------------------------- statements

  [[nodiscard]] Expected<Flow> exec(const std::vector<NodeId>& body) {
    const Level level(*this);
    for (const NodeId id : body) {
      if (!tick()) return failure();
      auto flow = statement(at(id), id);
      if (!flow && flow.error().where.empty()) flow.error().where = line_of(at(id).line);
      if (!flow || *flow != Flow::normal) return flow;
    }
    return Flow::normal;
  }

  [[nodiscard]] Expected<Flow> statement(const Ast& node, NodeId id) {
    switch (node.kind) {
      case NodeKind::output: NIHAO_CHECK(write(node.text)); return Flow::normal;
      case NodeKind::print:
        for (const NodeId kid : node.kids) NIHAO_CHECK(print(kid));
        return Flow::normal;
      case NodeKind::branch: return branch(node);
      case NodeKind::loop: NIHAO_CHECK(loop(node, id)); return Flow::normal;
      case NodeKind::set: NIHAO_CHECK(set(node)); return Flow::normal;
      case NodeKind::set_block: NIHAO_CHECK(set_block(node)); return Flow::normal;
      case NodeKind::macro: assign(node.symbol, make_macro(id)); return Flow::normal;
      case NodeKind::call_block: NIHAO_CHECK(call_block(node)); return Flow::normal;
      case NodeKind::filter_block: NIHAO_CHECK(filter_block(node)); return Flow::normal;
      case NodeKind::scope: return scope(node);
      case NodeKind::break_: return Flow::break_;
      case NodeKind::continue_: return Flow::continue_;
      default: return Error{ErrorCode::unsupported, node.text};
    }
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<void> print(NodeId id) {
    NIHAO_TRY(const Value value, eval(id));
    const std::size_t before = out_->size();
    NIHAO_CHECK(append_str(*this, *out_, value));
    return wrote(before);
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<Flow> branch(const Ast& node) {
    for (std::size_t i = 0; i < node.kids.size(); ++i) {
      NIHAO_TRY(const Value condition, eval(node.kids[i]));
      if (truth(condition)) return exec(node.bodies[i]);
    }
    if (node.bodies.size() > node.kids.size()) return exec(node.bodies.back());
    return Flow::normal;
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<void> set(const Ast& node) {
    NIHAO_TRY(Value value, eval(node.kids[1]));
    return store(node.kids[0], std::move(value));
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<void> set_block(const Ast& node) {
    std::string text;
    {
      ScopeHolder inner(*this, scope_);
      NIHAO_TRY(text, captured(node.bodies[0]));
    }
    Value value = Runtime::text(std::move(text));
    if (node.kids[1] != 0) { NIHAO_TRY(value, through(node.kids[1], value)); }
    return store(node.kids[0], std::move(value));
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<void> filter_block(const Ast& node) {
    std::string text;
    {
      ScopeHolder inner(*this, scope_);
      NIHAO_TRY(text, captured(node.bodies[0]));
    }
    NIHAO_TRY(const Value value, through(node.kids[0], Runtime::text(std::move(text))));
    const std::size_t before = out_->size();
    NIHAO_CHECK(append_str(*this, *out_, value));
    return wrote(before);
  }

  /// A chain of filters whose first input is `value`: the filter whose own input is node 0 gets it.
  [[nodiscard]] Expected<Value> through(NodeId filter, const Value& value) {
    const Value* const before = std::exchange(piped_, &value);
    auto out = eval(filter);
    piped_ = before;
    return out;
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<Flow> scope(const Ast& node) {
    std::vector<Value> values;
    for (std::size_t i = 1; i < node.kids.size(); i += 2) {
      NIHAO_TRY(Value value, eval(node.kids[i]));
      values.push_back(std::move(value));
    }
    ScopeHolder inner(*this, scope_);
    for (std::size_t i = 0; i < values.size(); ++i) NIHAO_CHECK(store(node.kids[2 * i], std::move(values[i])));
    return exec(node.bodies[0]);
  }

  /// Assigns to a name, to several, or to a member of a namespace.
  [[nodiscard]] Expected<void> store(NodeId target, Value value) {
    const Ast& node = at(target);
    if (node.kind == NodeKind::name) return assign(node.symbol, std::move(value)), Expected<void>{};
    if (node.kind == NodeKind::set_member) {
      const Value owner = lookup({.kind = NodeKind::name, .symbol = node.symbol, .text = template_.names[node.symbol]});
      if (owner.is(Kind::object) && owner.object()->set(node.text, value)) return {};
      return type_error("cannot assign attribute on non-namespace object");
    }
    if (!is_iterable(value)) return type_error(concat("cannot unpack non-iterable ", type_name(value), " object"));
    NIHAO_TRY(const Iteration all, iterate(*this, value));
    const std::size_t wanted = node.kids.size();
    if (all.items.size() < wanted)
      return value_error(concat("not enough values to unpack (expected ", wanted, ", got ", all.items.size(), ")"));
    if (all.items.size() > wanted) return value_error(concat("too many values to unpack (expected ", wanted, ")"));
    for (std::size_t i = 0; i < wanted; ++i) NIHAO_CHECK(store(node.kids[i], all.items[i]));
    return {};
  }

  // ---------------------------------------------------------------------------------------------------------------- loops

  /// The variable `loop`.
  class Loop final : public Object {
   public:
    Loop(Interpreter& in, NodeId node, Scope* outside, Iteration all, std::size_t depth)
        : in_(in), node_(node), outside_(outside), all_(std::move(all)), depth_(depth) {}
    [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
    [[nodiscard]] std::optional<Value> get(Runtime& rt, std::string_view name) override {
      const std::size_t size = all_.items.size();
      static constexpr Callable cycle{"cycle", [](Runtime&, const Value& self, const Arguments& a) -> Result {
                                        if (a.positional.empty()) return type_error("no items for cycling given");
                                        return a.positional[static_cast<Loop&>(*self.object()).index_ % a.positional.size()];
                                      }};
      static constexpr Callable changed{"changed", [](Runtime& rt, const Value& self, const Arguments& a) -> Result {
                                          auto& loop = static_cast<Loop&>(*self.object());
                                          Value now = rt.list(a.positional, Flavor::tuple);
                                          const bool same = loop.last_ && equals(rt, *loop.last_, now);
                                          loop.last_ = std::move(now);
                                          return Value(!same);
                                        }};
      if (name == "index") return Value(index_ + 1);
      if (name == "index0") return Value(index_);
      if (name == "revindex") return Value(size - index_);
      if (name == "revindex0") return Value(size - index_ - 1);
      if (name == "first") return Value(index_ == 0);
      if (name == "last") return Value(index_ + 1 == size);
      if (name == "length") return Value(size);
      if (name == "depth") return Value(depth_ + 1);
      if (name == "depth0") return Value(depth_);
      if (name == "previtem") return index_ > 0 ? all_.items[index_ - 1] : rt.missing("there is no previous item");
      if (name == "nextitem") return index_ + 1 < size ? all_.items[index_ + 1] : rt.missing("there is no next item");
      if (name == "cycle") return rt.bound(&cycle, Value::object(this));
      if (name == "changed") return rt.bound(&changed, Value::object(this));
      return std::nullopt;
    }
    [[nodiscard]] bool can_call() const override { return true; }
    /// loop(items): the same loop over other items, as text.
    [[nodiscard]] Expected<Value> call(Runtime& rt, const Arguments& a) override {
      if (in_.at(node_).ops[0] != Op::add)
        return type_error("The loop must have the 'recursive' marker to be called recursively.");
      NIHAO_TRY(const auto p, bind<1>("loop", a, {"iterable"}, 1));
      std::string text;
      std::string* const outer = std::exchange(in_.out_, &text);
      auto done = in_.run_loop(in_.at(node_), node_, *p[0], outside_, depth_ + 1);
      in_.out_ = outer;
      rt.budget().alive -= std::min(rt.budget().alive, text.size());
      if (!done) return std::move(done).error();
      return rt.text(std::move(text));
    }

    [[nodiscard]] bool step(std::size_t index) noexcept { return index_ = index, index < all_.items.size(); }
    [[nodiscard]] const Value& item() const noexcept { return all_.items[index_]; }
    [[nodiscard]] bool empty() const noexcept { return all_.items.empty(); }

   private:
    Interpreter& in_;
    NodeId node_;
    Scope* outside_;
    Iteration all_;
    std::size_t depth_, index_ = 0;
    std::optional<Value> last_;
  };

  [[nodiscard]] NIHAO_NOINLINE Expected<void> loop(const Ast& node, NodeId id) {
    NIHAO_TRY(const Value over, eval(node.kids[1]));
    return run_loop(node, id, over, scope_, 0);
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<void> run_loop(const Ast& node, NodeId id, const Value& over, Scope* outside,
                                                       std::size_t depth) {
    const Level level(*this);
    if (!alive()) return failure();
    NIHAO_TRY(Iteration all, iterate(*this, over));
    if (node.kids[2] != 0) {
      Iteration chosen;
      for (const Value& item : all.items) {
        if (!tick()) return failure();
        ScopeHolder inner(*this, outside);
        NIHAO_CHECK(store(node.kids[0], item));
        NIHAO_TRY(const Value wanted, eval(node.kids[2]));
        if (truth(wanted)) chosen.made.push_back(item);
      }
      chosen.items = chosen.made;
      all = std::move(chosen);
    }
    const Value self = own(std::make_unique<Loop>(*this, id, outside, std::move(all), depth));
    auto& loop = static_cast<Loop&>(*self.object());
    for (std::size_t i = 0; loop.step(i); ++i) {
      if (!tick()) return failure();
      ScopeHolder inner(*this, outside);
      if (loop_ != no_symbol) assign(loop_, self);
      NIHAO_CHECK(store(node.kids[0], loop.item()));
      NIHAO_TRY(const Flow flow, exec(node.bodies[0]));
      if (flow == Flow::break_) break;
    }
    if (loop.empty()) {
      ScopeHolder inner(*this, outside);
      NIHAO_CHECK(exec(node.bodies[1]));
    }
    return {};
  }

  // --------------------------------------------------------------------------------------------------------------- macros

  class Macro final : public Object {
   public:
    Macro(Interpreter& in, NodeId node, Scope* outside) : in_(in), node_(node), outside_(outside) {}
    [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
    [[nodiscard]] bool can_call() const override { return true; }
    [[nodiscard]] std::optional<Value> get(Runtime& rt, std::string_view name) override {
      if (name == "name") return rt.text(in_.at(node_).text);
      return std::nullopt;
    }
    [[nodiscard]] Expected<Value> call(Runtime&, const Arguments& a) override {
      return in_.run_macro(in_.at(node_), outside_, a);
    }
    [[nodiscard]] Expected<void> print(Runtime&, std::string& out) override {
      out += "<Macro ", append_quoted(out, in_.at(node_).text), out += '>';
      return {};
    }

   private:
    Interpreter& in_;
    NodeId node_;
    Scope* outside_;
  };

  [[nodiscard]] Value make_macro(NodeId id) {
    for (Scope* s = scope_; s && !s->captured; s = s->parent) s->captured = true;
    return own(std::make_unique<Macro>(*this, id, scope_));
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<Value> run_macro(const Ast& node, Scope* outside, const Arguments& given) {
    const Level level(*this);
    if (!tick()) return failure();
    ScopeHolder inner(*this, outside);
    const std::size_t count = node.kids.size(), first_default = count - node.arguments.size();
    std::vector<char> have(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      have[i] = i < given.positional.size();
      assign(at(node.kids[i]).symbol,
             have[i] ? given.positional[i] : missing(concat("parameter '", at(node.kids[i]).text, "' was not provided")));
    }
    if (given.positional.size() > count && !node.specials.varargs) {
      return type_error(concat("macro '", node.text, "' takes not more than ", count, " argument(s)"));
    }
    std::vector<Value::Pair> more;
    if (node.specials.caller) assign(caller_, missing("No caller defined"));
    for (const auto& [name, value] : given.named) {
      std::size_t i = 0;
      while (i < count && at(node.kids[i]).text != name) ++i;
      if (i < count) {
        if (have[i])
          return type_error(concat("macro '", node.text, "' got multiple values for argument '", printable(name), "'"));
        have[i] = 1;
        assign(at(node.kids[i]).symbol, value);
      } else if (name == "caller" && node.specials.caller) {
        assign(caller_, value);
      } else if (name == "caller") {
        return type_error(concat("macro '", node.text,
                                 "' was invoked with two values for the special caller argument. This is most likely a bug."));
      } else if (node.specials.kwargs) {
        more.emplace_back(Runtime::text(name), value);
      } else {
        return type_error(concat("macro '", node.text, "' takes no keyword argument '", printable(name), "'"));
      }
    }
    if (node.specials.varargs) {
      std::vector<Value> rest;
      if (given.positional.size() > count)
        rest.assign(given.positional.begin() + static_cast<std::ptrdiff_t>(count), given.positional.end());
      assign(varargs_, list(std::move(rest), Flavor::tuple));
    }
    if (node.specials.kwargs) assign(kwargs_, dict(std::move(more)));
    for (std::size_t i = first_default; i < count; ++i) {
      if (have[i]) continue;
      NIHAO_TRY(Value value, eval(node.arguments[i - first_default].value));
      assign(at(node.kids[i]).symbol, std::move(value));
    }
    NIHAO_TRY(std::string text, captured(node.bodies[0]));
    return Runtime::text(std::move(text));
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<void> call_block(const Ast& node) {
    NIHAO_TRY(const Value made, call_node(at(node.kids[0]), make_macro(node.kids[1])));
    const std::size_t before = out_->size();
    NIHAO_CHECK(append_str(*this, *out_, made));
    return wrote(before);
  }

  std::string* out_ = nullptr;
  Symbol loop_ = no_symbol, caller_ = no_symbol, varargs_ = no_symbol, kwargs_ = no_symbol;
};

}  // namespace detail

/// Renders. `context` is a dict. Errors: template_error (raise_exception, with its text), mismatch (types, undefined values),
/// unsupported, limit; `where` is "line N".
[[nodiscard]] inline Expected<std::string> render(const Template& source, const Value& context, const Limits& limits,
                                                  const std::optional<DateTime>& now) {
  if (context.depth() > limits.depth) return Error{ErrorCode::limit, concat("the context is nested deeper than ", limits.depth)};
  return detail::Interpreter(source, context, limits, now).run();
}

}  // namespace nihao::jinja
