/** The pools of the service at a PostgreSQL of a bench, with time limits that no bench reaches. */
import { silentLogger as log } from '../runtime/kernel/log.js'
import {
  type DatabaseOptions,
  type OpenDatabase,
  openDatabase,
} from '../storage/platform/database.js'

export function openBenchDatabase(
  url: string,
  plane: DatabaseOptions['plane'],
  pools: { readonly max_connections: number; readonly identity_max_connections: number },
): Promise<OpenDatabase> {
  return openDatabase({
    settings: {
      ...pools,
      min_connections: 0,
      connect_timeout_secs: 20,
      idle_timeout_secs: 600,
      max_lifetime_secs: 1800,
      statement_cache_capacity: 100,
      test_before_acquire: true,
      statement_timeout_secs: 30,
      background_statement_timeout_secs: 60,
      idle_in_transaction_timeout_secs: 60,
      require_ssl: false,
    },
    urls: { runtime: url, identity: url, listener: url, auth: url, control: url, async: url },
    plane,
    log,
  })
}
