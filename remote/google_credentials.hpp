// SPDX-License-Identifier: BSL-1.0
//
// Credentials for Google Cloud Storage, in the order of Google's libraries, with keys and anonymous requests, which those do not
// have, first:
//
// 1. anonymous: the option, GS_NO_SIGN_REQUEST (GDAL's), GOOGLE_SKIP_SIGNATURE (obstore's)
// 2. HMAC keys: GS_ACCESS_KEY_ID, GS_SECRET_ACCESS_KEY (GDAL's)
// 3. a token: GOOGLE_OAUTH_ACCESS_TOKEN
// 4. anonymous if STORAGE_EMULATOR_HOST is set
// 5. the file that GOOGLE_APPLICATION_CREDENTIALS names: a service account's key, or a user's that gcloud made
// 6. application_default_credentials.json in CLOUDSDK_CONFIG or ~/.config/gcloud, the same
// 7. the metadata server of the machine; not with NO_GCE_CHECK=true
//
#ifndef ZARRBITS_REMOTE_GOOGLE_CREDENTIALS_HPP
#define ZARRBITS_REMOTE_GOOGLE_CREDENTIALS_HPP

#include "remote/sigv4.hpp"

#include <zarrbits/remote_access.hpp>

#include <string>

namespace zarrbits::remote {

// Reads variables and files, and asks servers, each time. `target`: for sentences. Throws zarrbits::error if none are found, or
// their source fails; neither a key nor a token is in its sentence.
s3_credentials find_google_credentials(const std::string& target, const remote_access& remote, const std::string& ca_file);

}  // namespace zarrbits::remote

#endif
