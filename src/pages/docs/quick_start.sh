export API_KEY=KEY_PREFIX_…    # your key

curl --compressed -H "Authorization: Bearer $API_KEY" \
  "BASE_ADDRESS/models?period=24h&sortBy=coding"
