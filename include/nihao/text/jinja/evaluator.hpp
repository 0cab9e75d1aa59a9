// Evaluates a template's expressions in a chain of scopes.
#pragma once

#include "globals.hpp"
#include "parser.hpp"

#include <deque>

namespace nihao::jinja::detail {

/// Variables of one stretch of the template.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<Symbol, Value>> variables = {};
  bool captured = false;  // by a macro, which may outlive the stretch
};

class Evaluator : public Runtime {
 public:
  [[nodiscard]] Expected<Value> call(const Value& callee, const Arguments& arguments) override {
    if (callee.is(Kind::function)) return callee.callable()->call(*this, callee.self(), arguments);
    if (callee.is(Kind::object)) return callee.object()->call(*this, arguments);
    if (callee.is_undefined()) return undefined_error(callee);
    return type_error(concat("'", type_name(callee), "' object is not callable"));
  }

 protected:
  Evaluator(const Template& source, const Value& context, const Limits& limits, const std::optional<DateTime>& now)
      : Runtime(limits, now), template_(source), context_(context) {}

  [[nodiscard]] const Ast& at(NodeId id) const noexcept { return template_.nodes[id]; }

  // --------------------------------------------------------------------------------------------------------------- scopes

  /// Makes a scope current while it lives. Scopes are reused, unless a macro holds on to them.
  class ScopeHolder {
   public:
    ScopeHolder(Evaluator& in, Scope* parent) : in_(in), before_(in.scope_) {
      if (in.free_scopes_.empty()) {
        in.scopes_.emplace_back();
        in.free_scopes_.push_back(&in.scopes_.back());
        in.budget().alive += sizeof(Scope);
      }
      mine_ = in.free_scopes_.back();
      in.free_scopes_.pop_back();
      mine_->parent = parent;
      in.scope_ = mine_;
    }
    ~ScopeHolder() {
      in_.scope_ = before_;
      if (mine_->captured) return;
      mine_->variables.clear();
      in_.free_scopes_.push_back(mine_);
    }
    ScopeHolder(const ScopeHolder&) = delete;
    ScopeHolder& operator=(const ScopeHolder&) = delete;

   private:
    Evaluator& in_;
    Scope* before_;
    Scope* mine_;
  };

  void assign(Symbol symbol, Value value) {
    for (auto& [name, old] : scope_->variables) {
      if (name == symbol) return void(old = std::move(value));
    }
    scope_->variables.emplace_back(symbol, std::move(value));
  }

  [[nodiscard]] Value lookup(const Ast& name) {
    for (const Scope* scope = scope_; scope; scope = scope->parent) {
      for (const auto& [symbol, value] : scope->variables) {
        if (symbol == name.symbol) return value;
      }
    }
    if (const Value* given = context_.find(name.text)) return *given;
    if (const Callable* global = find_global(*this, name.text)) return bound(global, Value::none());
    return missing(concat("'", printable(name.text), "' is undefined"));
  }

  // ---------------------------------------------------------------------------------------------------------- expressions

  [[nodiscard]] Expected<Value> eval(NodeId id) {
    const Level level(*this);
    if (!tick()) return failure();
    const Ast& node = at(id);
    auto value = expression(node);
    if (!value && value.error().where.empty()) value.error().where = line_of(node.line);
    return value;
  }

  [[nodiscard]] Expected<Value> expression(const Ast& node) {
    switch (node.kind) {
      case NodeKind::constant: return node.value;
      case NodeKind::name: return lookup(node);
      case NodeKind::list:
      case NodeKind::tuple: return row(node);
      case NodeKind::dict: return dict_literal(node);
      case NodeKind::attribute: return attribute(node);
      case NodeKind::item: return item(node);
      case NodeKind::slice: return slice_of(node);
      case NodeKind::call: return call_node(node, {});
      case NodeKind::filter: return filter(node);
      case NodeKind::test: return test(node);
      case NodeKind::negate:
      case NodeKind::plus: return sign(node);
      case NodeKind::invert: return invert(node);
      case NodeKind::arithmetic: return arithmetic_chain(node);
      case NodeKind::compare: return compare(node);
      case NodeKind::all:
      case NodeKind::any: return logic(node);
      case NodeKind::concat: return joined(node);
      case NodeKind::conditional: return conditional(node);
      default: return Error{ErrorCode::unsupported, "a statement where a value is needed"};
    }
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<Value> row(const Ast& node) {
    std::vector<Value> items;
    for (const NodeId kid : node.kids) {
      NIHAO_TRY(Value value, eval(kid));
      items.push_back(std::move(value));
    }
    return list(std::move(items), node.kind == NodeKind::tuple ? Flavor::tuple : Flavor::list);
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> dict_literal(const Ast& node) {
    std::vector<Value::Pair> entries;
    for (std::size_t i = 0; i < node.kids.size(); i += 2) {
      NIHAO_TRY(Value key, eval(node.kids[i]));
      NIHAO_TRY(Value value, eval(node.kids[i + 1]));
      if (!hashable(key)) return unhashable(key);
      entries.emplace_back(std::move(key), std::move(value));
    }
    return dict(std::move(entries));
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> attribute(const Ast& node) {
    NIHAO_TRY(const Value of, eval(node.kids[0]));
    return get_attribute(*this, of, node.text);
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> item(const Ast& node) {
    NIHAO_TRY(const Value of, eval(node.kids[0]));
    NIHAO_TRY(const Value key, eval(node.kids[1]));
    return get_item(*this, of, key);
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> slice_of(const Ast& node) {
    NIHAO_TRY(const Value of, eval(node.kids[0]));
    Value bounds[3] = {Value::none(), Value::none(), Value::none()};
    for (std::size_t i = 0; i < 3; ++i) {
      if (node.kids[i + 1] == 0) continue;
      NIHAO_TRY(bounds[i], eval(node.kids[i + 1]));
    }
    return slice(*this, of, bounds[0], bounds[1], bounds[2]);
  }

  [[nodiscard]] Expected<Arguments> arguments(const Ast& node) {
    Arguments out;
    for (const Argument& given : node.arguments) {
      NIHAO_TRY(Value value, eval(given.value));
      switch (given.kind) {
        case Argument::Kind::positional: out.positional.push_back(std::move(value)); break;
        case Argument::Kind::named: out.named.emplace_back(given.name, std::move(value)); break;
        case Argument::Kind::unpack_list: {
          NIHAO_TRY(const Iteration all, iterate(*this, value));
          if (!room(all.items.size() * sizeof(Value))) return failure();
          out.positional.insert(out.positional.end(), all.items.begin(), all.items.end());
          break;
        }
        case Argument::Kind::unpack_dict:
          if (!value.is(Kind::dict)) return type_error(concat("argument after ** must be a mapping, not ", type_name(value)));
          for (const auto& [key, entry] : value.entries()) {
            if (!key.is_string()) return type_error("keywords must be strings");
            if (!tick()) return failure();
            out.named.emplace_back(key.text(), entry);
          }
      }
    }
    return out;
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> call_node(const Ast& node, const Value& caller) {
    const Ast& callee = at(node.kids[0]);
    if (callee.kind != NodeKind::attribute) {
      NIHAO_TRY(const Value function, eval(node.kids[0]));
      NIHAO_TRY(Arguments given, arguments(node));
      if (!caller.is_undefined()) given.named.emplace_back("caller", caller);
      return call(function, given);
    }
    // A method is called on its value, without an object for the method.
    NIHAO_TRY(const Value self, eval(callee.kids[0]));
    if (const Callable* method = find_method(self, callee.text)) {
      NIHAO_TRY(const Arguments given, arguments(node));
      auto made = method->call(*this, self, given);
      if (self.markup() && made.has_value() && made->is_string()) return made->as_markup();
      return made;
    }
    NIHAO_TRY(const Value function, get_attribute(*this, self, callee.text));
    NIHAO_TRY(Arguments given, arguments(node));
    if (!caller.is_undefined()) given.named.emplace_back("caller", caller);
    return call(function, given);
  }

  [[nodiscard]] NIHAO_NOINLINE Expected<Value> filter(const Ast& node) {
    if (!node.builtin) return Error{ErrorCode::unsupported, concat("No filter named '", printable(node.text), "'.")};
    Value input;
    if (node.kids[0] == 0) {
      input = *piped_;
    } else {
      NIHAO_TRY(input, eval(node.kids[0]));
    }
    NIHAO_TRY(const Arguments given, arguments(node));
    return static_cast<const FilterFunction*>(node.builtin)->call(*this, input, given);
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> test(const Ast& node) {
    if (!node.builtin) return Error{ErrorCode::unsupported, concat("No test named '", printable(node.text), "'.")};
    NIHAO_TRY(const Value of, eval(node.kids[0]));
    NIHAO_TRY(const Arguments given, arguments(node));
    NIHAO_TRY(const bool answer, static_cast<const TestFunction*>(node.builtin)->call(*this, of, given));
    return Value(answer);
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> sign(const Ast& node) {
    NIHAO_TRY(const Value of, eval(node.kids[0]));
    if (of.is_undefined()) return undefined_error(of);
    if (!of.is_number())
      return type_error(
          concat("bad operand type for unary ", node.kind == NodeKind::plus ? "+" : "-", ": '", type_name(of), "'"));
    if (of.is(Kind::real)) return Value(node.kind == NodeKind::plus ? of.real() : -of.real());
    if (node.kind == NodeKind::plus) return Value(of.integer());
    return arithmetic(*this, Op::sub, Value(0), Value(of.integer()));
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> invert(const Ast& node) {
    NIHAO_TRY(const Value of, eval(node.kids[0]));
    return Value(!truth(of));
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> arithmetic_chain(const Ast& node) {
    NIHAO_TRY(Value value, eval(node.kids[0]));
    for (std::size_t i = 1; i < node.kids.size(); ++i) {
      NIHAO_TRY(const Value next, eval(node.kids[i]));
      NIHAO_TRY(value, arithmetic(*this, node.ops[i - 1], value, next));
    }
    return value;
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> compare(const Ast& node) {
    NIHAO_TRY(Value left, eval(node.kids[0]));
    for (std::size_t i = 1; i < node.kids.size(); ++i) {
      NIHAO_TRY(Value right, eval(node.kids[i]));
      NIHAO_TRY(const bool holds, relation(node.ops[i - 1], left, right));
      if (!holds) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }
  [[nodiscard]] Expected<bool> relation(Op op, const Value& a, const Value& b) {
    switch (op) {
      case Op::eq: return equals(*this, a, b);
      case Op::ne: return !equals(*this, a, b);
      case Op::in: return contains(*this, b, a);
      case Op::not_in: {
        NIHAO_TRY(const bool inside, contains(*this, b, a));
        return !inside;
      }
      default: {
        NIHAO_TRY(const auto o, order(*this, a, b, symbol(op)));
        return op == Op::lt ? o < 0 : op == Op::le ? o <= 0 : op == Op::gt ? o > 0 : o >= 0;
      }
    }
  }
  /// `and` and `or` give one of their operands, not a boolean.
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> logic(const Ast& node) {
    const bool stops_at = node.kind == NodeKind::any;
    for (std::size_t i = 0;; ++i) {
      NIHAO_TRY(Value value, eval(node.kids[i]));
      if (i + 1 == node.kids.size() || truth(value) == stops_at) return value;
    }
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> joined(const Ast& node) {
    std::string out;
    for (const NodeId kid : node.kids) {
      NIHAO_TRY(const Value value, eval(kid));
      NIHAO_CHECK(append_str(*this, out, value));
    }
    return Runtime::text(std::move(out));
  }
  [[nodiscard]] NIHAO_NOINLINE Expected<Value> conditional(const Ast& node) {
    NIHAO_TRY(const Value condition, eval(node.kids[0]));
    if (truth(condition)) return eval(node.kids[1]);
    if (node.kids[2] != 0) return eval(node.kids[2]);
    return missing(
        concat("the inline if-expression on line ", node.line, " evaluated to false and no else section was defined."));
  }

  const Template& template_;
  const Value& context_;
  Scope* scope_ = nullptr;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  const Value* piped_ = nullptr;  // the text that a filter block or set block is about to filter
};

}  // namespace nihao::jinja::detail
