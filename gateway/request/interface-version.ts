/** Version of the public API, in OpenAPI, capabilities and `svc --version`. */
export const INTERFACE_VERSION = '2.4.0'
