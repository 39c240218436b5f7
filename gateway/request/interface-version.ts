/** Version of the public API, in OpenAPI, capabilities and `svc --version`. */
export const INTERFACE_VERSION = '2.4.0'
/** Version of this build, the newest of CHANGELOG.md: in `svc --version`, and in the internal OpenAPI document as `x-release`. */
export const RELEASE_VERSION = '0.3.0'
