// The kernels in a worker of the plain module, for the tests of one file.
import { afterAll } from 'vitest';
import { headlightLab } from '../built_package.js';

export const lab = await headlightLab.HeadLab.start({ module: 'simd' });
afterAll(() => lab.dispose());
