/** A service with all features that a populated tenant needs, and the servers that it calls. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Api, apiOf } from '../api.js'
import { startFacilitator } from '../commerce/facilitator.js'
import { type Receiver, startReceiver } from '../webhooks/receiver.js'
import { REGISTRATION } from '../identity/registering.js'
import { type TestService, testService } from '../service.js'
import { COMMERCE } from '../commerce/shop.js'

export interface PopulatedService {
  readonly running: TestService
  readonly api: Api
  readonly receiver: Receiver
  close(): Promise<void>
}

/** Starts it with these settings in addition to the settings of a populated tenant. */
export async function startPopulatedService(
  environment: Readonly<Record<string, string>> = {},
): Promise<PopulatedService> {
  const receiver = await startReceiver()
  const facilitator = await startFacilitator(null)
  // Accepts everything: there is no chain in this test.
  facilitator.mischief = ({ operation, paymentPayload, paymentRequirements }) => {
    const { authorization } = paymentPayload.payload as { authorization: { from: string } }
    const { network, amount } = paymentRequirements
    const payer = authorization.from
    const transaction = `0x${randomBytes(32).toString('hex')}`
    return operation === 'verify'
      ? { isValid: true, payer }
      : { success: true, payer, transaction, network, amount }
  }
  const assets = await mkdtemp(join(tmpdir(), 'svc-assets-'))
  const running = await testService({
    environment: {
      SVC_ACCESS_CONTROL__ENABLED: 'true',
      SVC_API_KEYS__ENABLED: 'true',
      SVC_VAULT__EGRESS_CALLS_STREAM_SECS: '1',
      SVC_BILLING__ENABLED: 'true',
      SVC_WALLET__ENABLED: 'true',
      SVC_OPENAPI__EXPOSURE: 'internal',
      SVC_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: 'true',
      SVC_WEBHOOKS__CA_PEM_PATH: receiver.certificate.certPath,
      SVC_SECURITY__WEBHOOK_ALLOW_NON_STANDARD_PORTS: 'true',
      SVC_ENTERPRISE_SSO__ENABLED: 'true',
      SVC_VERIFIED_DOMAINS__ENABLED: 'true',
      SVC_SCIM__ENABLED: 'true',
      SVC_SCIM__GROUPS_ENABLED: 'true',
      SVC_TENANT_ASSETS__ENABLED: 'true',
      SVC_TENANT_ASSETS__FOLDER: assets,
      ...COMMERCE,
      SVC_COMMERCE__X402_ENABLED: 'true',
      SVC_COMMERCE__X402_FACILITATOR_URL: facilitator.url,
      ...REGISTRATION,
      ...environment,
    },
  })
  const api = apiOf(running)
  return {
    running,
    api,
    receiver,
    async close() {
      await api.close()
      await running.end()
      await receiver.close()
      await facilitator.close()
      await rm(assets, { recursive: true, force: true })
    },
  }
}
