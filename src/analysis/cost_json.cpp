#include "heed/analysis/cost_json.h"

namespace heed {

namespace {

using Json = nlohmann::ordered_json;

Json row_json(Json json, const CostRow& row, const EnergyTable& table) {
  for (const CountKind& kind : count_kinds) json[kind.name] = row.counts.*kind.member;
  const double bytes = row.moved * static_cast<double>(table.number_bytes);
  json["energy_pj"] = energy_pj(table, row.counts);
  json["bytes"] = bytes;
  for (const EnergyFigure& memory : table.memory) json["memory_pj"][memory.of] = memory.pj * bytes;
  json["params"] = row.parameters;
  return json;
}

}  // namespace

nlohmann::ordered_json cost_json(const ModelCost& model, const CostQuery& query, const EnergyTable& table) {
  constexpr const char* conventions[] = {"contractions", "all"};
  constexpr const char* passes[] = {"forward", "backward", "step"};
  Json json;
  json["convention"] = conventions[static_cast<std::size_t>(query.convention)];
  json["pass"] = passes[static_cast<std::size_t>(query.pass)];
  json["batch"] = query.batch;
  json["energy_table"] = table.name;
  json["params"] = model.parameters;
  json["total"] = row_json(Json::object(), cost_total(model, query), table);
  json["attention_exp"] = attention_exponentials(model);
  json["activation_bytes"] = model.kept * table.number_bytes * query.batch;
  json["layers"] = Json::array();
  for (const CostRow& row : cost_rows(model, query))
    json["layers"].push_back(row_json(Json{{"name", row.name}}, row, table));
  return json;
}

}  // namespace heed
