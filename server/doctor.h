/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor: `kernd doctor`: is everything here that boxes need, and if not, what is to be done?
 */
#ifndef KERND_SERVER_DOCTOR_H
#define KERND_SERVER_DOCTOR_H

/*
 * [--json] and options of serve, which say where the server's places are. Starts boxes as the user
 * that the daemon would be, in directories of its own; changes nothing else. Main thread, before
 * any other starts. The exit status: 0: all is well; 1: it works, with warnings; 2: something must
 * be done first, or wrong usage.
 */
int doctor_main(int count, char *const *arguments);

#endif
