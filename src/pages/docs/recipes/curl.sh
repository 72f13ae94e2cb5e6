models() {
  [ -e models.expires ] && [ "$(date +%s)" -lt "$(cat models.expires)" ] && return
  curl -sS --fail --compressed -H "Authorization: Bearer $API_KEY" -D models.headers \
    --etag-compare models.etag --etag-save models.etag -o models.json "BASE_ADDRESS/models" || return
  age=$(sed -n 's/^cache-control:.*max-age=\([0-9]*\).*/\1/Ip' models.headers)
  echo "$(($(date +%s) + age))" > models.expires
}
