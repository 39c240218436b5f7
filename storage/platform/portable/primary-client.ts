/**
 * A connection that refuses a standby. A standby accepts no writes, and its rows can be old: a revoked token would look
 * valid. PostgreSQL 14 and later report `in_hot_standby` when a connection opens, so the check needs no round trip.
 */
import { Client, type ClientConfig } from 'pg'
import { ServerIsStandby } from '../unavailable.js'

interface ParameterStatus {
  readonly parameterName: string
  readonly parameterValue: string
}

interface Reports {
  on(event: 'parameterStatus', listener: (status: ParameterStatus) => void): void
}

export class PrimaryClient extends Client {
  #isStandby: boolean | undefined

  constructor(config?: ClientConfig) {
    super(config)
    const { connection } = this as unknown as { readonly connection: Reports }
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.#isStandby = parameterValue === 'on'
    })
  }

  /** @throws {ServerIsStandby} */
  async requirePrimary(): Promise<void> {
    if (this.#isStandby === undefined) {
      const { rows } = await this.query<{ standby: boolean }>(
        'select pg_is_in_recovery() as standby',
      )
      this.#isStandby = rows[0]?.standby === true
    }
    if (this.#isStandby) throw new ServerIsStandby()
  }
}
