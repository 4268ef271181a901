// What answers each address of the server: README.md has the list.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "view/guard.h"
#include "view/http.h"
#include "view/jobs.h"
#include "view/picture.h"
#include "view/preview.h"
#include "view/request.h"
#include "view/shelf.h"

namespace ungrain::cli::view {

struct ApiSettings {
  std::string output;               // folder of results; empty: beside each input
  Device device = {};               // of previews
  std::size_t memory = 0;           // for pictures and their tiles
  std::uintmax_t upload_limit = 0;  // bytes
};

class Api : public HttpHandler {
 public:
  Api(Shelf& shelf, Guard guard, ApiSettings settings);

  HttpAnswer admit(const HttpRequest& request) override;
  HttpAnswer answer(const HttpRequest& request) override;
  bool receives(const HttpRequest& request) const override;
  HttpAnswer receive(const HttpRequest& request, const ReadBody& body) override;

 private:
  HttpAnswer routed(const HttpRequest& request);
  std::string without_folders(std::string message) const;
  nlohmann::json session() const;
  nlohmann::json info(const HttpRequest& request);
  HttpAnswer tile(const HttpRequest& request);
  HttpAnswer thumbnail(const HttpRequest& request);
  nlohmann::json histogram_of(const HttpRequest& request);
  nlohmann::json noise(const HttpRequest& request);
  nlohmann::json check(const nlohmann::json& body);
  nlohmann::json save(const nlohmann::json& body);
  nlohmann::json batch(const nlohmann::json& body);
  HttpAnswer download(const HttpRequest& request);

  nlohmann::json value(const HttpRequest& request);
  nlohmann::json preset(const nlohmann::json& body);

  // What a request takes a file for: as it says, or as the file says of itself.
  Treatment treatment(int file, const std::string& asked);
  Treatment treatment(int file, const nlohmann::json& body);
  Treatment usual_treatment(const ShelfFile& file, const nlohmann::json& body);
  const std::vector<Treatment>& treatments_of(int file);
  std::shared_ptr<Document> document(int file, Treatment treatment);
  std::shared_ptr<Picture> picture(int file, Treatment treatment, int page);
  std::shared_ptr<Picture> picture(const HttpRequest& request);
  Arguments checked_words(const nlohmann::json& words, Treatment treatment) const;
  FilePair files_for(const ShelfFile& file, Treatment as, const std::string& name,
                     const std::string& folder) const;

  Shelf& shelf_;
  Guard guard_;
  ApiSettings settings_;
  HeldNoiseModels models_;
  Jobs jobs_;
  std::mutex documents_mutex_;
  std::list<std::shared_ptr<Document>> documents_;  // the last used first
  std::map<int, std::vector<Treatment>> treatments_;
  std::mutex pictures_mutex_;
  std::list<std::shared_ptr<Picture>> pictures_;  // the last used first
  std::mutex thumbnails_mutex_;
  std::map<int, HttpAnswer> thumbnails_;  // by file
  Preview preview_;                       // last: it uses pictures
};

}  // namespace ungrain::cli::view
