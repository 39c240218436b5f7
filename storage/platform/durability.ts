/** How long a commit may take to reach the disk. */

/**
 * A select item. The transaction that evaluates it commits without waiting for the disk: a crash of
 * the server may lose what it wrote in the last fraction of a second, never half of it. For what is
 * asked for again when it is gone (a challenge, a stamp); never for what is used up or handed out.
 */
export const UNHURRIED = `set_config('synchronous_commit', 'off', true) as unhurried`
