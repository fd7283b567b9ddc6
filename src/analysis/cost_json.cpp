#include "heed/analysis/cost_json.h"

#include "heed/io/json.h"

namespace heed {

namespace {

constexpr const char* convention_names[] = {"contractions", "all"};

Json row_json(Json json, const CostRow& row, const EnergyTable& table) {
  for (const CountKind& kind : count_kinds) json[kind.name] = row.counts.*kind.member;
  const double bytes = row.moved * static_cast<double>(table.number_bytes);
  json["energy_pj"] = energy_pj(table, row.counts);
  json["bytes"] = bytes;
  for (const EnergyFigure& memory : table.memory) json["memory_pj"][memory.of] = memory.pj * bytes;
  json["params"] = row.parameters;
  return json;
}

Json model_json(Json json, const ModelCost& model, const CostQuery& query, const EnergyTable& table) {
  constexpr const char* passes[] = {"forward", "backward", "step"};
  json["convention"] = convention_names[static_cast<std::size_t>(query.convention)];
  json["counted"] = counted(query.convention);
  json["pass"] = passes[static_cast<std::size_t>(query.pass)];
  json["batch"] = query.batch;
  json["energy_table"] = table.name;
  json["params"] = model.parameters;
  json["total"] = row_json(Json::object(), cost_total(model, query), table);
  json["attention_exp"] = attention_exponentials(model);
  json["activation_bytes"] = model.kept * table.number_bytes * query.batch;
  json["layers"] = Json::list();
  for (const CostRow& row : cost_rows(model, query))
    json["layers"].push_back(row_json(Json::object({{"name", row.name}}), row, table));
  return json;
}

}  // namespace

std::string cost_json(const ModelCost& model, const CostQuery& query, const EnergyTable& table) {
  return model_json(Json::object(), model, query, table).dump();
}

std::string costs_json(std::span<const std::string> names, std::span<const ModelCost> models, const CostQuery& query,
                       const EnergyTable& table) {
  Json json;
  json["models"] = Json::list();
  for (std::size_t i = 0; i < models.size(); ++i)
    json["models"].push_back(model_json(Json::object({{"model", names[i]}}), models[i], query, table));
  return json.dump();
}

std::string cost_file(const ModelCost& model, CostQuery query, const EnergyTable& table) {
  Json json;
  json["version"] = HEED_VERSION;
  for (const Convention convention : {Convention::contractions, Convention::all}) {
    query.convention = convention;
    json[convention_names[static_cast<std::size_t>(convention)]] = model_json(Json::object(), model, query, table);
  }
  return json.dump(1) + "\n";
}

}  // namespace heed
