/** One service process on a given database: `node write-ceiling-server.js <database url> <data folder> [issuer]`. */
import { startWhole } from '../whole-service.js'

const [url = '', dataDir = '', issuer] = process.argv.slice(2)
const { service, port } = await startWhole(dataDir, {
  DATABASE_URL: url,
  ...(issuer === undefined ? {} : { SVC_OIDC__ISSUER_URL: issuer }),
})
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuSeconds: (user + system) / 1e6 })
})
process.on('disconnect', () => process.exit(0))
process.send?.({ port, issuer: service.baseUrl, tenantId: service.controlPlaneTenantId })
