//! The values that the pages show but that are not in the tables.

use scoregate_base::{
    plans::{FieldSets, Tier, standard_tiers},
    routes::{
        API_BASE, Endpoint, EndpointTable, Param, PublishedField, SourceDescription, root_of,
    },
};

use super::{sample::SampleAnswer, site_links::SiteLinks, terms::default_terms};

/// The values that the pages show but that are not in the tables. All values are escaped.
#[derive(Clone, Debug)]
pub struct PagesConfig {
    /// The service's name.
    pub service: String,
    /// The attribution sentence, as in the envelope.
    pub license: String,
    /// The data API's version, as in the envelope.
    pub version: String,
    /// The tiers, lowest first.
    pub tiers: Vec<Tier>,
    /// The sets of fields that the tiers see.
    pub field_sets: FieldSets,
    /// The address for clients, with or without a trailing `/api/v1`. If it is not set, the pages show `/api/v1`
    /// without a host.
    pub base_url: Option<String>,
    /// The address of the port, if only this machine can reach it. Examples use it if there is no `base_url`.
    pub local_url: Option<String>,
    /// Prefix of keys, for examples.
    pub key_prefix: String,
    /// A model for the examples, if the backend is known to have this model.
    pub example_model: Option<String>,
    /// Refusals per minute that the guard allows.
    pub guard_per_minute: u32,
    /// The endpoints of the API.
    pub endpoints: EndpointTable,
    /// Documented properties of a mapped data source.
    pub source: SourceDescription,
    /// Whether the service has a status page.
    pub status_page: bool,
    /// Whether callers can sign up.
    pub sign_up: bool,
    /// Whether language models may call the endpoints as tools.
    pub mcp: bool,
    /// The proof, for the MCP registry, that the domain belongs to the operator.
    pub registry_auth: Option<String>,
    /// The terms of use, one sentence each.
    pub terms: Vec<String>,
    /// Contacts and links of the operator.
    pub links: SiteLinks,
}

impl Default for PagesConfig {
    fn default() -> Self {
        Self {
            service: "scoregate".into(),
            license:
                "Data by scoregate. Wherever it is shown, the source must be cited with a link."
                    .into(),
            version: "1.0.0".into(),
            tiers: standard_tiers(),
            field_sets: FieldSets::default(),
            base_url: None,
            local_url: None,
            key_prefix: "sg_live".into(),
            example_model: None,
            guard_per_minute: 60,
            endpoints: EndpointTable::default(),
            source: SourceDescription::default(),
            status_page: false,
            sign_up: false,
            mcp: false,
            registry_auth: None,
            terms: default_terms("scoregate"),
            links: SiteLinks::default(),
        }
    }
}

impl PagesConfig {
    /// The fields listed for an endpoint. `None` unless its items have the shape of the data source.
    pub(super) fn listed(&self, endpoint: &Endpoint) -> Option<&[PublishedField]> {
        self.source.fields.get(&endpoint.route).map(Vec::as_slice)
    }

    /// The parameters of an endpoint that the data source ignores.
    pub(super) fn ignored(&self, endpoint: &Endpoint) -> &[Param] {
        self.source
            .ignored
            .get(&endpoint.route)
            .map_or(&[], Vec::as_slice)
    }

    /// A whole response of an endpoint.
    pub(super) fn sample(&self, endpoint: &Endpoint) -> SampleAnswer<'_> {
        SampleAnswer::of(endpoint, &self.version, &self.license).listing(self.listed(endpoint))
    }

    /// The public address of `/`, without the slash.
    pub(super) fn root(&self) -> Option<&str> {
        self.base_url.as_deref().map(root_of)
    }

    /// The base address of all data paths, ending in `/api/v1`. It has no host if no address is configured.
    pub(super) fn base(&self) -> String {
        format!("{}{API_BASE}", self.root().unwrap_or_default())
    }
}
