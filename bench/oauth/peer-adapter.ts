/**
 * Storage of oidc-provider on PostgreSQL, as efficient as possible: one table, one named statement per operation, a pool with as many connections as the service.
 */
import type { Adapter, AdapterPayload } from 'oidc-provider'
import { Pool } from 'pg'

const TABLE = `create table if not exists oidc_payloads (
  model text, id text, payload jsonb not null, grant_id text, user_code text, uid text,
  expires_at timestamptz, consumed_at timestamptz, primary key (model, id));
create index if not exists oidc_payloads_grant on oidc_payloads (grant_id);
create index if not exists oidc_payloads_uid on oidc_payloads (uid) where uid is not null`

type Row = { payload: AdapterPayload; consumed_at: Date | null }

/** @returns the adapter class for `new Provider(issuer, { adapter })`. */
export async function postgresAdapter(url: string): Promise<new (model: string) => Adapter> {
  const pool = new Pool({ connectionString: url, max: 20 })
  // At the end of a bench the database is stopped first.
  pool.on('error', () => undefined)
  await pool.query(TABLE)

  const one = async (name: string, where: string, values: unknown[]) => {
    const { rows } = await pool.query<Row>({
      name,
      text: `select payload, consumed_at from oidc_payloads
        where model = $1 and ${where} = $2 and (expires_at is null or expires_at > now())`,
      values,
    })
    const row = rows[0]
    return row && { ...row.payload, ...(row.consumed_at ? { consumed: true } : {}) }
  }

  return class implements Adapter {
    readonly model: string
    constructor(model: string) {
      this.model = model
    }
    async upsert(id: string, payload: AdapterPayload, expiresIn?: number) {
      await pool.query({
        name: 'peer.upsert',
        text: `insert into oidc_payloads (model, id, payload, grant_id, user_code, uid, expires_at)
          values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 second')
          on conflict (model, id) do update set payload = excluded.payload,
            grant_id = excluded.grant_id, user_code = excluded.user_code, uid = excluded.uid,
            expires_at = excluded.expires_at`,
        values: [
          this.model,
          id,
          payload,
          payload.grantId ?? null,
          payload.userCode ?? null,
          payload.uid ?? null,
          expiresIn ?? null,
        ],
      })
    }
    find = (id: string) => one('peer.find', 'id', [this.model, id])
    findByUserCode = (code: string) => one('peer.by-user-code', 'user_code', [this.model, code])
    findByUid = (uid: string) => one('peer.by-uid', 'uid', [this.model, uid])
    async consume(id: string) {
      await pool.query({
        name: 'peer.consume',
        text: 'update oidc_payloads set consumed_at = now() where model = $1 and id = $2',
        values: [this.model, id],
      })
    }
    async destroy(id: string) {
      await pool.query({
        name: 'peer.destroy',
        text: 'delete from oidc_payloads where model = $1 and id = $2',
        values: [this.model, id],
      })
    }
    async revokeByGrantId(grantId: string) {
      await pool.query({
        name: 'peer.revoke',
        text: 'delete from oidc_payloads where model = $1 and grant_id = $2',
        values: [this.model, grantId],
      })
    }
  }
}
