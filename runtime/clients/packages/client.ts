/** The entry of the package `@svc/client`: the client library and the resource-server kit. */
export * from '../client/exports.js'
export * from '../resource-server/exports.js'
