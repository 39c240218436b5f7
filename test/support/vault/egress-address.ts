/** A service with an egress address: the listener of its egress thread. */
import { type Api, apiOf } from '../api.js'
import { PROFILES } from '../fleet/profiles.js'
import { freePort, type TestServiceOptions } from '../service.js'
import { egressHouse, type EgressHouse } from './egress.js'

export interface AddressedHouse extends EgressHouse {
  /** `server.egress_url`. */
  readonly egressUrl: string
  readonly egressPort: number
  /** Sends to the egress address. */
  readonly atEgress: Api
}

export async function addressedHouse(
  { environment, ...options }: TestServiceOptions = {},
  start: (options: TestServiceOptions) => Promise<EgressHouse> = egressHouse,
): Promise<AddressedHouse> {
  const egressPort = await freePort()
  const house = await start({
    ...options,
    environment: {
      ...PROFILES.egress,
      ...environment,
      SVC_SERVER__EGRESS_PORT: String(egressPort),
    },
  })
  const address = new URL(house.running.baseUrl)
  address.port = String(egressPort)
  const egressUrl = address.origin
  const atEgress = apiOf({ ...house.running, baseUrl: egressUrl })
  return {
    ...house,
    egressUrl,
    egressPort,
    atEgress,
    async end() {
      await atEgress.close()
      await house.end()
    },
  }
}
