/** Commits that do not wait for the disk. */

/**
 * A select item. Its transaction commits without waiting for the disk: a crash of the server can lose the whole
 * transaction within a fraction of a second. Use it for data that can be requested again (challenges, timestamps),
 * and never for single-use data or issued credentials.
 */
export const UNHURRIED = `set_config('synchronous_commit', 'off', true) as unhurried`
