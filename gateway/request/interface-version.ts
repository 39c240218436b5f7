/** Of the public interface: what OpenAPI, the capabilities and `svc --version` say (interface.md). */
export const INTERFACE_VERSION = '2.4.0'
