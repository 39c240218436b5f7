/** Rules for new passwords that need no look-up. */

/** NIST SP 800-63B section 3.1.1.2 requires at least 8. */
const PASSWORD_LENGTH_MIN = 12
const PASSWORD_LENGTH_MAX = 256

export function isStrong(password: string, email: string): boolean {
  const { length } = [...password]
  if (length < PASSWORD_LENGTH_MIN || length > PASSWORD_LENGTH_MAX) return false
  return password.toLowerCase() !== email.toLowerCase()
}
